// Lint rules for the app's browser code and its tests.

import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/.venv/", "**/venv/", "build/", "dist/", "runs/"] },
  js.configs.recommended,
  { rules: { eqeqeq: ["error", "always", { null: "ignore" }], "no-var": "error", "prefer-const": "error" } },
  { files: ["mha_viz/**/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["tests/**/*.js", "eslint.config.js"], languageOptions: { globals: globals.node } },
];
