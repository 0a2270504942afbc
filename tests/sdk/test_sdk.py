"""The published Python SDK (openshell 0.1.5) drives our gateway over its Unix socket.

runtests starts this with the SDK in a virtual environment. OPENSHELL_TEST_PRODUCT names the
installed product, OPENSHELL_TEST_SCRATCH a directory for everything the test makes.
"""

import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import grpc
from openshell import DeletionOutcome, GatewayError, SandboxClient, SandboxError, WorkspaceClient
from openshell._proto import openshell_pb2

PRODUCT = pathlib.Path(os.environ["OPENSHELL_TEST_PRODUCT"])
DEFAULT = {"workspace": "default"}


class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(dir=os.environ["OPENSHELL_TEST_SCRATCH"]))
        for name in ("home", "config", "state", "run"):
            (cls.root / name).mkdir(mode=0o700)
        cls.environment = {
            "PATH": f"{PRODUCT}/bin:/usr/bin:/bin",
            "HOME": f"{cls.root}/home",
            "XDG_CONFIG_HOME": f"{cls.root}/config",
            "XDG_STATE_HOME": f"{cls.root}/state",
            "OPENSHELL_RUN_DIR": f"{cls.root}/run/openshell",
            "OPENSHELL_EXEC_PATH": f"{PRODUCT}/libexec/openshell",
        }
        cls.command("gateway", "start")
        cls.client = SandboxClient(f"unix:{cls.root}/run/openshell/gateway.sock")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.command("gateway", "stop", "--stop-sandboxes")
        shutil.rmtree(cls.root)

    @classmethod
    def command(cls, *arguments):
        return subprocess.run(
            [PRODUCT / "bin/openshell", *arguments], env=cls.environment, check=True, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout

    def made(self, name, **options):
        """A sandbox that is ready, and deleted after the test."""
        self.client.create(name=name, **DEFAULT, **options)
        self.addCleanup(self.removed, name)
        return self.client.wait_ready(name, timeout_seconds=30, **DEFAULT)

    def removed(self, name):
        self.client.delete(name, allow_missing=True, **DEFAULT)
        self.client.wait_deleted(name, timeout_seconds=20, **DEFAULT)

    def test_health(self):
        health = self.client.health()
        self.assertEqual(health.status, openshell_pb2.SERVICE_STATUS_HEALTHY)
        self.assertTrue(health.version)

    def test_create_wait_get(self):
        created = self.client.create(name="one", labels={"team": "red"}, **DEFAULT)
        self.addCleanup(self.removed, "one")
        self.assertTrue(created.id)
        self.assertEqual((created.name, created.workspace), ("one", "default"))
        self.assertEqual(dict(created.labels), {"team": "red"})
        ready = self.client.wait_ready("one", timeout_seconds=30, **DEFAULT)
        self.assertEqual(ready.phase, openshell_pb2.SANDBOX_PHASE_READY)
        self.assertEqual(ready.id, created.id)
        self.assertIsNone(ready.status.exit_code)
        self.assertIsNone(ready.created_from_workload_template)
        conditions = {c.type: (c.status, c.reason) for c in ready.conditions}
        self.assertEqual(conditions["Ready"], ("True", "DependenciesReady"))
        self.assertEqual(self.client.get("one", **DEFAULT), ready)
        # The command sees what the SDK made.
        self.assertIn("one", self.command("sandbox", "list", "--names"))

    def test_generated_name(self):
        created = self.client.create(**DEFAULT)
        self.addCleanup(self.removed, created.name)
        self.assertRegex(created.name, r"^[a-z0-9]+(-[a-z0-9]+)+$")

    def test_list(self):
        for name in ("l1", "l2", "l3"):
            self.made(name, labels={"of": "list"})
        pages = list(self.client.list(label_selector="of=list", page_size=2, **DEFAULT))
        self.assertEqual([len(page.items) for page in pages], [2, 1])
        names = [s.name for page in pages for s in page.items]
        self.assertEqual(sorted(names), ["l1", "l2", "l3"])
        everywhere = self.client.list_all_for_all_workspaces(label_selector="of=list")
        self.assertEqual({s.name for s in everywhere}, set(names))
        self.assertEqual(self.client.list_all(label_selector="of=nothing", **DEFAULT), [])

    def test_exec(self):
        self.made("x")
        result = self.client.exec(
            "x", ["sh", "-c", "cat; echo err >&2; echo \"$V\"; pwd; exit 7"], stdin=b"in\n",
            env={"V": "two\nlines"}, workdir="/tmp", **DEFAULT)
        self.assertEqual(result.exit_code, 7)
        self.assertEqual(result.stdout, "in\ntwo\nlines\n/tmp\n")
        self.assertEqual(result.stderr, "err\n")
        # Without input, the command's input is at its end.
        self.assertEqual(self.client.exec("x", ["cat"], **DEFAULT).stdout, "")
        self.assertEqual(
            self.client.exec("x", ["printf", "%s", "a 'b'\n"], no_login_shell=True, **DEFAULT).stdout,
            "a 'b'\n")
        self.assertEqual(self.client.exec("x", ["sh", "-c", "kill -9 $$"], **DEFAULT).exit_code, 137)

    def test_exec_streams(self):
        self.made("x")
        chunks, started, first = [], time.monotonic(), None
        for item in self.client.exec_stream(
                "x", ["sh", "-c", "echo early; sleep 1; echo late >&2"], **DEFAULT):
            first = first or time.monotonic() - started
            chunks.append(item)
        self.assertLess(first, 0.9)
        self.assertEqual([(c.stream, c.data) for c in chunks[:-1]],
                         [("stdout", b"early\n"), ("stderr", b"late\n")])
        self.assertEqual(chunks[-1].exit_code, 0)

    def test_exec_large(self):
        self.made("x")
        data = os.urandom(3_000_000)
        result = self.client.exec("x", ["sha256sum"], stdin=data, **DEFAULT)
        self.assertEqual(result.stdout.split()[0], hashlib.sha256(data).hexdigest())
        received = b"".join(
            item.data for item in self.client.exec_stream("x", ["cat"], stdin=data, **DEFAULT)
            if hasattr(item, "data"))
        self.assertEqual(received, data)

    def test_exec_timeout(self):
        self.made("x")
        started = time.monotonic()
        result = self.client.exec("x", ["sleep", "60"], timeout_seconds=1, **DEFAULT)
        self.assertEqual(result.exit_code, 124)
        self.assertLess(time.monotonic() - started, 6)

    def test_main_command_that_ends(self):
        spec = openshell_pb2.SandboxSpec(command=["true"])
        self.client.create(name="ended", spec=spec, **DEFAULT)
        self.addCleanup(self.removed, "ended")
        ended = self.client.wait_ready("ended", timeout_seconds=30, **DEFAULT)
        deadline = time.monotonic() + 10
        while ended.phase != openshell_pb2.SANDBOX_PHASE_COMPLETED:
            self.assertLess(time.monotonic(), deadline)
            ended = self.client.get("ended", **DEFAULT)
        self.assertEqual(ended.status.exit_code, 0)
        spec = openshell_pb2.SandboxSpec(command=["sh", "-c", "exit 3"])
        self.client.create(name="failed", spec=spec, **DEFAULT)
        self.addCleanup(self.removed, "failed")
        with self.assertRaises(SandboxError):
            while True:
                self.assertLess(time.monotonic(), deadline + 20)
                self.client.wait_ready("failed", timeout_seconds=10, **DEFAULT)
        self.assertEqual(self.client.get("failed", **DEFAULT).status.exit_code, 3)

    def test_stop_start_and_the_refusal(self):
        self.made("s")
        self.client.stop("s", **DEFAULT)
        self.client.wait_stopped("s", timeout_seconds=20, **DEFAULT)
        with self.assertRaises(GatewayError) as caught:
            self.client.exec("s", ["true"], **DEFAULT)
        error = caught.exception
        self.assertEqual(error.code(), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(error.details(), "sandbox is not ready")
        self.assertIsNotNone(error.error_info)
        self.assertEqual(error.error_info.domain, "openshell.nvidia.com")
        self.assertEqual(error.error_info.reason, "Stopped")
        self.assertEqual(error.error_info.metadata,
                         {"phase": "SANDBOX_PHASE_STOPPED", "sandbox": "s"})
        self.client.start("s", **DEFAULT)
        self.client.wait_ready("s", timeout_seconds=30, **DEFAULT)
        self.assertEqual(self.client.exec("s", ["echo", "again"], **DEFAULT).stdout, "again\n")

    def test_delete(self):
        self.made("d")
        result = self.client.delete("d", **DEFAULT)
        self.assertIn(result.outcome, (DeletionOutcome.COMPLETED, DeletionOutcome.ACCEPTED))
        self.assertTrue(result.sandbox_id)
        self.client.wait_deleted("d", timeout_seconds=20, **DEFAULT)
        with self.assertRaises(GatewayError) as caught:
            self.client.get("d", **DEFAULT)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        with self.assertRaises(GatewayError):
            self.client.delete("d", **DEFAULT)
        self.assertEqual(self.client.delete("d", allow_missing=True, **DEFAULT).outcome,
                         DeletionOutcome.ALREADY_ABSENT)

    def test_refused_fields_are_all_named(self):
        spec = openshell_pb2.SandboxSpec(environment={"1BAD": "x", "OPENSHELL_X": "y"})
        with self.assertRaises(GatewayError) as caught:
            self.client.create(name="Bad_Name", spec=spec, labels={"-k": "v"}, **DEFAULT)
        error = caught.exception
        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        fields = " ".join(v.field for v in error.field_violations)
        for word in ("name", "environment", "labels"):
            self.assertIn(word, fields)
        self.assertGreaterEqual(len(error.field_violations), 4)

    def test_what_is_not_built_yet_says_so(self):
        with self.assertRaises(GatewayError) as caught:
            WorkspaceClient.from_sandbox_client(self.client).create("another")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("CreateWorkspace", caught.exception.details())

    def test_exec_that_its_client_leaves_is_ended(self):
        self.made("x")
        marker = f"{2_000_000 + os.getpid()}"
        stream = self.client.exec_stream(
            "x", ["sh", "-c", f"echo started; exec sleep {marker}"], **DEFAULT)
        next(stream)
        self.client.close()
        type(self).client = SandboxClient(f"unix:{self.root}/run/openshell/gateway.sock")
        deadline = time.monotonic() + 6
        while subprocess.run(["pgrep", "-f", f"^sleep {marker}$"], stdout=subprocess.DEVNULL,
                             check=False).returncode == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


if __name__ == "__main__":
    signal.alarm(240)
    unittest.main(verbosity=2, argv=sys.argv[:1])
