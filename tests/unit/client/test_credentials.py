"""Kubeconfigs good and bad, KUBECONFIG lists, exec plugins, token files, the pod's service account."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.client import credentials as module
from pilotage.client.credentials import Access, Credentials, CredentialsError, load


def config(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
    }
    return document | changes


def cluster(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"} | fields}]


def user(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "u", "user": fields}]


def write(path: Path, document: object) -> Path:
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def access(credentials: Credentials) -> Access:
    return asyncio.run(_access(credentials))


async def _access(credentials: Credentials) -> Access:
    return await credentials.access()


def from_document(tmp_path: Path, document: object, context: str | None = None) -> Credentials:
    return load(str(write(tmp_path / "config", document)), context)


def test_token_and_namespace(tmp_path: Path) -> None:
    loaded = from_document(tmp_path, config())
    assert (loaded.server, loaded.namespace) == ("https://127.0.0.1:6443", "team")
    got = access(loaded)
    assert got.authorization == "Bearer s3cret"
    assert got.tls.verify
    assert "s3cret" not in repr(got) + repr(loaded)


def test_basic_authentication(tmp_path: Path) -> None:
    got = access(from_document(tmp_path, config(users=user(username="a", password="b"))))
    assert got.authorization == "Basic " + base64.b64encode(b"a:b").decode()


@pytest.mark.parametrize("insecure", [True, False])
def test_verification_is_off_only_if_the_file_says_so(tmp_path: Path, insecure: bool) -> None:
    clusters = cluster(**{"insecure-skip-tls-verify": insecure})
    assert access(from_document(tmp_path, config(clusters=clusters))).tls.verify is not insecure


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    contexts = [{"name": "main", "context": {"cluster": "c"}}]
    assert access(from_document(tmp_path, config(contexts=contexts, users=None))).authorization == ""


def test_certificates_as_data_and_as_files_relative_to_the_config(tmp_path: Path) -> None:
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text(name)
    users = user(**{"client-certificate": "cert.pem", "client-key": "key.pem"})
    tls = access(
        from_document(tmp_path, config(users=users, clusters=cluster(**{"certificate-authority": "ca.pem"})))
    ).tls
    assert [Path(p) for p in (tls.ca_file, tls.cert_file, tls.key_file)] == [
        tmp_path / "ca.pem",
        tmp_path / "cert.pem",
        tmp_path / "key.pem",
    ]
    data = base64.b64encode(b"CA!").decode()
    clusters = cluster(**{"certificate-authority-data": data, "tls-server-name": "kube"})
    tls = access(from_document(tmp_path, config(clusters=clusters))).tls
    assert Path(tls.ca_file).read_bytes() == b"CA!"
    assert tls.server_name == "kube"


def test_another_context_and_an_unknown_one(tmp_path: Path) -> None:
    contexts = [{"name": n, "context": {"cluster": "c", "user": "u"}} for n in ("main", "other")]
    assert from_document(tmp_path, config(contexts=contexts), "other").namespace == "default"
    with pytest.raises(CredentialsError, match=r"context: 'nope': no such context .*there are: main, other"):
        from_document(tmp_path, config(contexts=contexts), "nope")


def test_a_list_is_merged_like_kubectl_does(tmp_path: Path) -> None:
    first = write(tmp_path / "one", {"current-context": "a", "clusters": cluster(server="http://one:1")})
    contexts = [{"name": n, "context": {"cluster": "c", "user": "u"}} for n in ("a", "b")]
    second = write(tmp_path / "two", config(contexts=contexts, **{"current-context": "b"}))
    listed = os.pathsep.join([str(tmp_path / "missing"), str(first), "", str(second)])
    loaded = load(environment={"KUBECONFIG": listed}, home=tmp_path)
    assert loaded.server == "http://one:1"
    assert access(loaded).authorization == "Bearer s3cret"


def test_the_home_directory_comes_last_but_one(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", config())
    assert load(environment={}, home=tmp_path).namespace == "team"


def test_nothing_at_all_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="--kubeconfig"):
        load(environment={}, home=tmp_path)
    with pytest.raises(CredentialsError, match="no such file"):
        load(str(tmp_path / "nope"))
    with pytest.raises(CredentialsError, match="none of these files exists"):
        load(environment={"KUBECONFIG": str(tmp_path / "nope")}, home=tmp_path)


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("a: [1\nb", r"line 2, column 2: not valid YAML"),
        ("- a", r"must be a mapping"),
        ("", r"current-context: not set"),
        (config(clusters="x"), r"clusters: 'x': must be a list"),
        (config(clusters=[3]), r"clusters\[0\]: a int: must be a mapping"),
        (config(clusters=[{"cluster": {}}]), r"clusters\[0\]\.name: not set: must be a non-empty string"),
        (config(clusters=[]), r"contexts\[0\]\.context\.cluster: 'c': no such cluster"),
        (config(users=[]), r"contexts\[0\]\.context\.user: 'u': no such user"),
        (config(contexts=[]), r"current-context: 'main': no such context"),
        (config(contexts=[{"name": "main", "context": {}}]), r"context\.cluster: not set: must name"),
        (config(**{"current-context": 7}), r"current-context: 7: must be a string"),
        (config(clusters=cluster(server="")), r"clusters\[0\]\.cluster\.server: '': must be a URL"),
        (config(clusters=cluster(server="localhost:80")), r"cluster\.server: 'localhost:80': must be a URL"),
        (config(clusters=cluster(server="https://h:99999999")), r"cluster\.server: .*must be a URL"),
        (config(clusters=cluster(server=5)), r"cluster\.server: 5: must be a string"),
        (
            config(clusters=cluster(**{"insecure-skip-tls-verify": "no"})),
            r"clusters\[0\]\.cluster\.insecure-skip-tls-verify: 'no': must be true or false",
        ),
        (
            config(clusters=cluster(**{"certificate-authority": "nope.pem"})),
            r"certificate-authority: 'nope.pem': no such file",
        ),
        (
            config(clusters=cluster(**{"certificate-authority-data": "%%%"})),
            r"certificate-authority-data: '%%%': must be base64",
        ),
        (config(users=user(token=7)), r"users\[0\]\.user\.token: \(hidden\): must be a string"),
        (
            config(users=user(**{"client-key-data": "%%%"})),
            r"users\[0\]\.user\.client-key-data: \(hidden\): must be base64",
        ),
        (
            config(users=user(**{"client-certificate-data": "YQ=="})),
            r"client-key: not set: .*belong together",
        ),
        (config(users=user(exec="x")), r"user\.exec: 'x': must be a mapping"),
        (config(users=user(exec={"apiVersion": "v1"})), r"user\.exec\.command: not set"),
        (config(users=user(exec=PLUGIN | {"args": ["a", 1]})), r"user\.exec\.args: .*list of strings"),
        (config(users=user(exec=PLUGIN | {"env": [{"name": "A"}]})), r"user\.exec\.env: "),
    ],
)
def test_a_malformed_file_is_one_line_with_file_field_and_value(
    tmp_path: Path, document: object, expected: str
) -> None:
    with pytest.raises(CredentialsError, match=expected) as caught:
        from_document(tmp_path, document)
    message = str(caught.value)
    assert str(tmp_path / "config") in message
    assert "\n" not in message
    assert "s3cret" not in message


def test_what_the_chosen_context_does_not_use_may_be_broken(tmp_path: Path) -> None:
    clusters = [*cluster(), {"name": "other", "cluster": {"server": "nonsense"}}]
    assert from_document(tmp_path, config(clusters=clusters)).namespace == "team"


def exec_plugin(tmp_path: Path, body: str) -> list[dict[str, Any]]:
    script = tmp_path / "plugin.py"
    script.write_text(f"import json, os, pathlib, sys\n{body}\n")
    variables = [{"name": "WHO", "value": "me"}]
    command = {"command": sys.executable, "args": [str(script)], "env": variables}
    return user(exec={"apiVersion": "client.authentication.k8s.io/v1", **command})


ANSWER = """
count = pathlib.Path(sys.argv[0] + ".count")
count.write_text(count.read_text() + "x" if count.exists() else "x")
status = {"token": os.environ["WHO"] + str(len(count.read_text()))}
answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
print(json.dumps(answer | {"status": status}))
"""


@pytest.mark.slow
def test_exec_plugin_runs_once_and_again_after_a_401(tmp_path: Path) -> None:
    async def main() -> list[str]:
        loaded = from_document(tmp_path, config(users=exec_plugin(tmp_path, ANSWER)))
        first = await loaded.access()
        again = await loaded.access()
        after = await asyncio.gather(loaded.refresh(again), loaded.refresh(again))
        return [a.authorization for a in (first, again, *after)]

    assert asyncio.run(main()) == ["Bearer me1", "Bearer me1", "Bearer me2", "Bearer me2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sys.exit('no luck')", "no luck"),
        ("print('no json')", "decode"),
        ("print('{}')", "missing key"),
    ],
)
def test_exec_plugin_that_fails_is_named(tmp_path: Path, body: str, expected: str) -> None:
    loaded = from_document(tmp_path, config(users=exec_plugin(tmp_path, body)))
    with pytest.raises(CredentialsError, match=expected) as caught:
        access(loaded)
    assert "users[0].user: exec.command" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_exec_plugin_that_does_not_exist_is_named(tmp_path: Path) -> None:
    users = user(exec=PLUGIN | {"command": "no-such-program-here"})
    with pytest.raises(CredentialsError, match=r"exec\.command: 'no-such-program-here'"):
        access(from_document(tmp_path, config(users=users)))


def test_token_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKEN_FILE_SECONDS", 0.0)
    token = tmp_path / "token"
    token.write_text("one\n")

    async def main() -> list[str]:
        loaded = from_document(tmp_path, config(users=user(tokenFile="token")))
        first = await loaded.access()
        token.write_text("two\n")
        return [first.authorization, (await loaded.access()).authorization]

    assert asyncio.run(main()) == ["Bearer one", "Bearer two"]


def service_account(tmp_path: Path) -> Path:
    for name, text in (("token", "tok\n"), ("ca.crt", "CA"), ("namespace", "kube-system")):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd::1", "https://[fd::1]:443")]
)
def test_in_cluster(tmp_path: Path, host: str, server: str) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    loaded = module.in_cluster(environment, service_account(tmp_path))
    got = access(loaded)
    assert (loaded.server, loaded.namespace) == (server, "kube-system")
    assert got.server == server
    assert got.authorization == "Bearer tok"
    assert got.tls.ca_file == str(tmp_path / "ca.crt")
    assert got.tls.verify


def test_in_cluster_without_its_files(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(CredentialsError, match="in-cluster credentials in"):
        access(module.in_cluster(environment, tmp_path))
