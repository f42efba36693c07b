//go:build tools

package box_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// projects are small ones of tools whose daemons, servers and workers need more than files. Each script ends with 0 if the
// tool did its work.
var projects = []struct {
	name   string
	files  []string
	script string
}{
	{"Gradle, with its daemon", []string{`build.gradle=task well {
  doLast {
    def s = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))
    new Socket("127.0.0.1", s.localPort); s.accept(); println "well"
  }
}
`}, `gradle --offline --daemon -q well | grep -x well && gradle --stop`},
	{"Maven", []string{`pom.xml=<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version></project>
`}, `mvn -o -q validate`},
	{"pytest with a live server", []string{`test_live.py=import http.server, threading, urllib.request, pytest

@pytest.fixture
def url():
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:%d/" % s.server_port
    s.shutdown()

def test_live(url):
    assert urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url).status == 200
`}, `python3 -m pytest -q`},
	{"cargo test", []string{`Cargo.toml=[package]
name = "a"
version = "0.1.0"
edition = "2021"
`, `src/lib.rs=#[test]
fn listens() {
    let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std::net::TcpStream::connect(l.local_addr().unwrap()).unwrap();
    l.accept().unwrap();
}
`}, `cargo test --offline -q`},
	{"mix test", []string{`mix.exs=defmodule A.MixProject do
  use Mix.Project
  def project, do: [app: :a, version: "0.1.0"]
end
`, `test/test_helper.exs=ExUnit.start()
`, `test/a_test.exs=defmodule ATest do
  use ExUnit.Case
  test "listens" do
    {:ok, l} = :gen_tcp.listen(0, ip: {127, 0, 0, 1}, active: false)
    {:ok, port} = :inet.port(l)
    {:ok, _} = :gen_tcp.connect({127, 0, 0, 1}, port, [])
    assert {:ok, _} = :gen_tcp.accept(l)
  end
end
`}, `mix test`},
	{"PostgreSQL by TCP", nil, `PATH=$(ls -d /usr/lib/postgresql/*/bin):$PATH
initdb -D data --auth=trust >/dev/null && pg_ctl -D data -w -o "-h 127.0.0.1 -p 54329 -k ''" -l log start >/dev/null &&
[ "$(psql -h 127.0.0.1 -p 54329 -Atc 'select 6 * 7' postgres)" = 42 ] && pg_ctl -D data -m fast stop >/dev/null || { cat log; exit 1; }`},
	{"vitest", []string{`live.test.mjs=import http from "node:http"
import { expect, test } from "vitest"

test("a server", async () => {
  const s = http.createServer((_, w) => w.end("well"))
  await new Promise((done) => s.listen(0, "127.0.0.1", done))
  expect(await (await fetch("http://127.0.0.1:" + s.address().port)).text()).toBe("well")
  s.close()
})
`}, `node_modules/.bin/vitest run`},
	{"Playwright with a server of its own", []string{`playwright.config.mjs=export default {
  webServer: { command: "python3 -m http.server --bind 127.0.0.1 54328", url: "http://127.0.0.1:54328/" },
  use: { baseURL: "http://127.0.0.1:54328/" },
}
`, `live.spec.mjs=import { expect, test } from "@playwright/test"

test("a server", async ({ request }) => {
  expect((await request.get("/")).status()).toBe(200)
})
`}, `node_modules/.bin/playwright test live.spec.mjs`},
}

// TestTools uses real tools in the sandbox as a user, after the same outside of it.
func TestTools(t *testing.T) {
	const modules = "node_modules" // a copy, which the user can reach
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		dir := boxtest.AsUser(t, cmd, os.TempDir())
		from := must.Get(filepath.EvalSymlinks("testdata/tools/" + modules))(t)
		out, err := exec.Command("cp", "-r", from, filepath.Join(dir, modules)).CombinedOutput()
		must.Equal(t, string(out), nil, err)
	}, func(t *testing.T) {
		must.OK(t, box.RoomsAvailable())
		for _, p := range projects {
			t.Run(p.name, func(t *testing.T) {
				base := boxtest.FolderOutsideTmp(t)
				sandbox := box.New(box.Options{Layers: box.Layers{Folder: base + "/layers"}})
				t.Cleanup(func() { must.Check(t, sandbox.Close()) })
				must.OK(t, os.Mkdir(base+"/home", 0o700))
				spec := run.Spec{Argv: []string{"bash", "-c", p.script}, Timeout: 5 * time.Minute}
				spec.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base + "/home", "LANG=C.UTF-8", "CARGO_HOME=" + base + "/home/.cargo"}
				for _, tool := range []string{"GRADLE", "MAVEN"} { // Java asks the system for the home
					spec.Env = append(spec.Env, tool+"_OPTS=-Duser.home="+base+"/home")
				}
				for _, where := range []string{"outside", "inside"} {
					spec.Dir = filepath.Join(base, where)
					boxtest.Lay(t, spec.Dir, append(p.files, modules+" -> "+filepath.Join(os.TempDir(), modules))...)
					if where == "inside" {
						policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}
						spec.Confinement = must.Get(sandbox.Confine(policy, spec.Dir, spec.Env))(t)
					}
					if res := ran(t, spec); res.ExitCode != 0 {
						t.Errorf("%s: exit code %d: %s", where, res.ExitCode, res.Aggregated)
					}
				}
			})
		}
	})
}
