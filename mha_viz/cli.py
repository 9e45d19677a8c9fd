"""The command `mha-viz`: alone, it starts the app; `mha_viz.commands` holds its other commands.

Each sets `run`, which takes the parsed options, returns the exit code, and raises MhaVizError with
a message for the user.
"""

import argparse
import errno
import os
import socket
import sys
from collections.abc import Sequence

import mha_viz
from mha_viz import commands
from mha_viz.assets import APP
from mha_viz.errors import AddressError, MhaVizError

_HOST = "localhost"  # as in .streamlit/config.toml
_FAILED, INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line (by default, sys.argv) and returns its exit code.

    0: finished, or stopped by Ctrl+C while serving; 1: failed, with a message on stderr; 2: unknown
    or invalid options (argparse exits by itself); 130: interrupted before it finished.
    """
    try:
        options = _parsed(arguments)
        code: int = options.run(options)
        if sys.stdout is not None:  # None if it is closed
            sys.stdout.flush()
    except MhaVizError as error:
        print(f"mha-viz: {error}", file=sys.stderr)
        return _FAILED
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "not enough memory" not in str(error):
            raise
        reason = "there is not enough memory. Use a shorter text or a smaller model."
        print(f"mha-viz: {reason}", file=sys.stderr)
        return _FAILED
    except BrokenPipeError:  # the reader of the output has closed it
        _discard_output()
        return _FAILED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _discard_output()
        print("mha-viz: the output cannot be written: no space is left.", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _discard_output() -> None:
    """So that Python does not try to write the rest of it when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def serve(options: argparse.Namespace) -> int:
    """Serves the app until it is stopped. Raises AddressError if it cannot be served."""
    _check_address(options.host or _HOST, options.port)
    # Importing Streamlit takes half a second; no other command should have to wait for it.
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


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest := commands.text_after_options(options, rest):
        getattr(options, "refuse", parser.error)(f"unrecognized arguments: {' '.join(rest)}")
    if options.run is not serve and (options.port or options.host or options.no_browser):
        parser.error("--port, --host and --no-browser are for the app; a command takes none")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mha-viz",
        description="Starts the app: every attention head of a GPT-2, on the text you type.",
        epilog="By default, only this machine can open the app; --host changes that. Any other "
        "Streamlit setting can be given as an environment variable, for example "
        "STREAMLIT_SERVER_ALLOWED_HOSTS.",
    )
    parser.add_argument("--version", action="version", version=f"mha-viz {mha_viz.__version__}")
    parser.add_argument(
        "--port", type=_port, help="port to serve on (default: the first free port from 8501)"
    )
    parser.add_argument(
        "--host", help=f"address to serve on (default: {_HOST}; 0.0.0.0: every network address)"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, but do not open a browser"
    )
    parser.set_defaults(run=serve)
    commands.add_to(parser.add_subparsers(title="commands without a browser", metavar="COMMAND"))
    return parser


def _port(typed: str) -> int:
    if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= 65535):
        raise argparse.ArgumentTypeError(f"{typed!r} is not a whole number from 1 to 65535")
    return int(typed)


def _check_address(host: str, port: int | None) -> None:
    """Binds the address briefly, so that a problem with it is reported in one sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if sys.platform != "win32":  # there, the option would allow a port in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            raise AddressError(_refusal(error, host, port)) from error


def _refusal(error: OSError, host: str, port: int | None) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is in use on {host}. Choose another with --port, or omit it to use "
            "the first free port."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to use port {port} on {host}. Choose one above 1023 with --port."
    return (
        f"this machine cannot serve on {host!r}. Set --host to an address of this machine, such as "
        "localhost, or to 0.0.0.0 for all of them."
    )
