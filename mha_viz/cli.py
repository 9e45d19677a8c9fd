"""The command `mha-viz`, which starts the app.

A new command gets its own parser under `add_subparsers`, with `set_defaults(run=...)` as here;
plain `mha-viz` still starts the app. A `run` takes the parsed options, returns the exit code,
and raises MhaVizError with a message for the user.
"""

import argparse
import errno
import socket
import sys
from collections.abc import Sequence

import mha_viz
from mha_viz.assets import APP
from mha_viz.errors import AddressError, MhaVizError

_HOST = "localhost"  # as in .streamlit/config.toml
_FAILED, _INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line (by default, sys.argv) and returns its exit code.

    0: done, or stopped by Ctrl+C while serving; 1: refused, with one sentence on stderr; 2: unknown
    or invalid options (argparse exits by itself); 130: stopped before it was done.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except MhaVizError as error:
        print(f"mha-viz: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def serve(options: argparse.Namespace) -> int:
    """Serves the app until it is stopped. Raises AddressError if it cannot be served."""
    _check_address(options.host or _HOST, options.port)
    # Streamlit takes half a second, which no other command should pay.
    import click
    from streamlit.web import cli as streamlit

    command = ["run", str(APP)]
    if options.host is not None:
        command += ["--server.address", options.host]
    if options.port is not None:
        command += ["--server.port", str(options.port)]
    if options.no_browser:
        command += ["--server.headless", "true"]
    try:
        streamlit.main(command, prog_name="mha-viz", standalone_mode=False)
    except click.exceptions.Abort:  # Ctrl+C, after the server has shut down
        return 0
    except click.ClickException as error:  # an invalid setting in the environment
        raise MhaVizError(error.format_message()) from error
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mha-viz",
        description="Starts the app: every attention head of a GPT-2, on the text you type.",
        epilog="The app serves only this machine unless --host says otherwise. Any other setting "
        "of Streamlit can be given in the environment, such as STREAMLIT_SERVER_ALLOWED_HOSTS.",
    )
    parser.add_argument("--version", action="version", version=f"mha-viz {mha_viz.__version__}")
    parser.add_argument(
        "--port", type=_port, help="port to serve on (default: the first free one from 8501 up)"
    )
    parser.add_argument(
        "--host", help=f"address to serve on (default: {_HOST}; 0.0.0.0 serves the network)"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address and open no browser"
    )
    parser.set_defaults(run=serve)
    return parser


def _port(typed: str) -> int:
    if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= 65535):
        raise argparse.ArgumentTypeError(f"{typed!r} is not a whole number from 1 to 65535")
    return int(typed)


def _check_address(host: str, port: int | None) -> None:
    """Binds the address briefly, so that a problem with it is reported in one sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if sys.platform != "win32":  # there it would allow a port that is in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            raise AddressError(_refusal(error, host, port)) from error


def _refusal(error: OSError, host: str, port: int | None) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is in use on {host}. Choose another with --port, or leave --port out to "
            "take the first free one."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"you may not open port {port} on {host}. Choose one above 1023 with --port."
    return (
        f"this machine cannot serve on {host!r}. Give --host an address of this machine, such as "
        "localhost, or 0.0.0.0 to serve the network."
    )
