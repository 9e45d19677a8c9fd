// @ts-check
// Where an item of a scene is in a frame: what figures/journey/scene.py computes as Motion.at.

/** @typedef {[number, number, number, number]} Rect left, top, width, height */

/**
 * Start, end, the first and the last frame of the motion, the opacity before and after, and the
 * frame from which on it is gone.
 * @typedef {[Rect, Rect, number, number, number, number, number]} Motion
 */

export const FRAMES = 12; // of a step
export const LAST = FRAMES - 1;

/**
 * How much of a motion is done when a share of its time has passed, from 0 to 1.
 * @param {number} share
 */
export function eased(share) {
  const x = Math.min(Math.max(share, 0), 1);
  return x * x * (3 - 2 * x);
}

/**
 * @param {Motion} motion
 * @param {number} frame
 */
export function shareOf([, , first, last], frame) {
  return eased((frame - first + 1) / (last - first + 1));
}

/**
 * The rectangle and the opacity in a frame.
 * @param {Motion} motion
 * @param {number} frame
 * @returns {{ rect: Rect, opacity: number }}
 */
export function at(motion, frame) {
  const [start, end, , , before, after, until] = motion, share = shareOf(motion, frame);
  const rect = /** @type {Rect} */ (start.map((value, i) => value + (end[i] - value) * share));
  return { rect, opacity: frame < until ? before + (after - before) * share : 0 };
}
