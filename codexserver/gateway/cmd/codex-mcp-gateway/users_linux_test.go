package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

type users struct {
	*process
	top, home, url string
	tokens         map[string]string
	work           map[string]string // the folder of each
}

// startUsers starts a gateway with codex-mcp-gateway.toml and variables for ann and bob, if this system can keep them
// apart.
func startUsers(t *testing.T, model *providertest.Server, service string, env []string, args ...string) *users {
	t.Helper()
	enclosuretest.Need(t)
	top := boxtest.Outside(t)
	u := &users{top: top, home: top + "/server", work: map[string]string{"ann": top + "/ann", "bob": top + "/bob"}}
	var tables string
	tables, u.tokens = newUsers(t, top, "ann", "bob")
	boxtest.Lay(t, top, "ann/secret.txt=secret of ann\n", "bob/secret.txt=secret of bob\n", `server/auth.json={"OPENAI_API_KEY":"secret of the server"}`,
		"server/config.toml="+configFor(model.BaseURL()), "server/codex-mcp-gateway.toml="+service, fmt.Sprintf("server/codex-mcp.toml=[approvals]\nlog = %q\n%s", top+"/approvals", tables))
	cmd := gateway(t, append([]string{"--engine", "native", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = env
	u.process = launch(t, top, u.home, cmd)
	u.url = u.serves()
	return u
}

func (u *users) as(name string) client {
	return client{u.t, servertest.HTTPClient{URL: u.url, Token: u.tokens[name]}}
}

func (u *users) workers() map[string]int {
	u.t.Helper()
	found := map[string]int{}
	for _, pid := range u.children() {
		for name, dir := range u.work {
			if at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && at == dir {
				found[name] = pid
			}
		}
	}
	return found
}

// begin sends a call that waits for the model, and returns when the model has n requests. The channel gets what came of it.
func (u *users) begin(name string, model *providertest.Server, n int) <-chan string {
	u.t.Helper()
	got := make(chan string, 1)
	go func() { got <- fmt.Sprint(u.as(name).call("wait")) }()
	clustertest.Until(u.t, "the model is not asked", func() bool { return len(model.Requests()) >= n })
	return got
}

func (u *users) list(name string) (status int, body string) {
	return u.as(name).do("tools/call", "codex-list", `"name":"codex-list","arguments":{}`)
}

// TestEndToEndUsers checks that requests and commands of ann cannot reach folders, conversations and tasks of bob, nor what is
// of the server. The model helps her, and so does a link to bob's folder in her own. [TestFolders] of codexserver/internal/tools
// has the arguments that are refused before anything runs, and TestEnclosure what a worker does not see.
func TestEndToEndUsers(t *testing.T) {
	t.Parallel()
	model, held := helping(t)
	defer close(held)
	s := newSecrets(t)
	u := startUsers(t, model, s.service, []string{"NATS_CREDS=secret of NATS", "NATS_PASSWORD=secret of NATS", "NKEYS_PATH=secret of NATS"},
		"-c", "approval_policy=never", "-c", "http.metrics=127.0.0.1:0")
	ann, bob, other := u.as("ann"), u.as("bob"), u.work["bob"]
	boxtest.Lay(t, u.top, "bob/a.png=\x89PNG\r\n\x1a\n secret of bob", "ann/a.png -> @/bob/a.png")
	_, body, err := bob.call("hello")
	must.OK(t, err)
	thread, task := member(t, body, "threadId"), bob.begin("wait secret of bob")
	works := func() {
		t.Helper()
		if status, got := bob.do("tasks/get", task, `"taskId":"`+task+`"`); status != 200 || !strings.Contains(got, `"working"`) {
			t.Errorf("bob's task: %d %s", status, got)
		}
	}
	works()
	if _, got := u.list("bob"); !strings.Contains(got, thread) {
		t.Fatalf("bob's list: %s", got)
	}
	outside := "does not lie in one of the folders"
	for _, tt := range []struct{ name, tool, arguments, want string }{
		{"cwd", "codex", `"prompt":"p","cwd":"` + other + `"`, "/cwd: " + other + " " + outside},
		{"list", "codex-list", ``, `"conversations":[]`},
		{"reply", "codex-reply", `"prompt":"p","threadId":"` + thread + `"`, "no conversation"},
		{"view_image by a link", "codex", `"prompt":"view a.png"`, "the answer to view"},
		{"a rollout of another folder", "codex-reply", `"prompt":"p","threadId":"` + thread + `"`, "/threadId: its folder: " + other + " " + outside},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "a rollout of another folder" {
				u.keepRollout(thread)
			}
			status, body := ann.do("tools/call", tt.tool, `"name":"`+tt.tool+`","arguments":{`+tt.arguments+`}`)
			if id, isTask := textOf(body, `"taskId":"`); isTask {
				clustertest.Until(t, "the task does not end", func() bool {
					_, body = ann.do("tasks/get", id, `"taskId":"`+id+`"`)
					return !strings.Contains(body, `"working"`)
				})
			}
			if status != 200 || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), tt.want) || strings.Contains(body, "secret of bob") {
				t.Errorf("%d %s, want %s", status, body, tt.want)
			}
		})
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		if status, got := ann.do(method, task, `"taskId":"`+task+`","inputResponses":{}`); status == 200 && !strings.Contains(got, "no such task") {
			t.Errorf("%s: %d %s", method, status, got)
		}
	}
	u.tryCommands(model, s)
	_, metrics, _ := strings.Cut(u.errors(), "serving metrics at ")
	metrics, _, _ = strings.Cut(metrics, "/metrics\n")
	for url, want := range map[string]int{u.url + "/mcp": 401, u.url + "/healthz": 200, metrics + "/metrics": 200} {
		if got := (servertest.HTTPClient{URL: url}).Status(t, ""); got != want {
			t.Errorf("%s: %d", url, got)
		}
	}
	rebound := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, metrics+"/metrics", nil))(t)
	rebound.Host = "evil.example"
	answer := must.Get(http.DefaultClient.Do(rebound))(t)
	answer.Body.Close()
	must.Equal(t, "the status of the metrics for another Host", http.StatusForbidden, answer.StatusCode)
	for _, r := range model.Requests() {
		body := string(r.Body)
		if strings.Contains(body, u.work["ann"]) && (strings.Contains(body, "secret of bob") || strings.Contains(body, "iVBORw0KGgogc2VjcmV0IG9mIGJvYg")) {
			t.Errorf("the model of ann was sent bob's: %.2000s", body)
		}
	}
	works()
}

// keepRollout copies the rollout of a conversation of bob to ann's home, as a backup might.
func (u *users) keepRollout(thread string) {
	u.t.Helper()
	from, to := u.home+"/codex-mcp/principals/bob", u.home+"/codex-mcp/principals/ann"
	found, err := filepath.Glob(from + "/sessions/*/*/*/*" + thread + "*")
	if err != nil || len(found) != 1 {
		u.t.Fatalf("bob's rollout: %q, %v", found, err)
	}
	must.OK(u.t, os.WriteFile(strings.Replace(found[0], from, to, 1), must.Get(os.ReadFile(found[0]))(u.t), 0o600))
}

func (u *users) rewrite(change ...string) {
	u.t.Helper()
	file := u.home + "/codex-mcp.toml"
	text := string(must.Get(os.ReadFile(file))(u.t))
	must.OK(u.t, os.WriteFile(file, []byte(strings.NewReplacer(change...).Replace(text)), 0o600))
}

// reload sends SIGHUP, and waits until the program has said something once more.
func (u *users) reload(says string) {
	u.t.Helper()
	before := strings.Count(u.errors(), says)
	must.OK(u.t, u.cmd.Process.Signal(syscall.SIGHUP))
	clustertest.Until(u.t, "it does not say "+says, func() bool { return strings.Count(u.errors(), says) > before })
}

// TestEndToEndUsersReload changes the file of users while the server runs and turns of them run: nothing happens because
// of a wrong file, a worker does not start with it, and a token is replaced.
func TestEndToEndUsersReload(t *testing.T) {
	t.Parallel()
	model, held := helping(t)
	defer close(held)
	u := startUsers(t, model, "", nil)
	stays := u.begin("bob", model, 1)
	u.rewrite("[approvals]", "broken\n[approvals]")
	if status, body, err := u.as("ann").call("hello"); status != 503 || err != nil || strings.Contains(body, "broken") {
		t.Errorf("with a broken file: %d %s %v", status, body, err)
	}
	clustertest.Until(t, "the log does not say why", func() bool {
		return strings.Contains(u.errors(), "principal=ann") && strings.Contains(u.errors(), "codex-mcp.toml:1")
	})
	u.rewrite("broken\n", "")
	goes := u.begin("ann", model, 2)
	before := u.workers()

	u.rewrite(u.work["bob"], u.work["bob"]+"/none")
	u.reload("http.principals.bob.folders")
	if got := u.workers(); len(goes) > 0 || len(stays) > 0 || !maps.Equal(before, got) {
		t.Errorf("a wrong file has changed something: the workers are %v and were %v", got, before)
	}
	if status, body := u.list("ann"); status != 200 {
		t.Errorf("ann: %d %s", status, body)
	}

	token, hash := access.NewToken()
	u.rewrite(u.work["bob"]+"/none", u.work["bob"], access.Hash(u.tokens["ann"]), hash)
	u.reload("reloaded the users; their number: 2")
	clustertest.Until(t, "the call of the token that was revoked does not end", func() bool { return len(goes) > 0 })
	if got := <-goes; strings.Contains(got, "the answer") {
		t.Errorf("the open call of the token that was revoked: %s", got)
	}
	if status, body := u.list("ann"); status != http.StatusUnauthorized {
		t.Errorf("the old token: %d %s", status, body)
	}
	u.tokens["ann"] = token
	if status, body, err := u.as("ann").call("hello"); status != 200 || err != nil || !strings.Contains(body, "the answer to hello") {
		t.Errorf("the new token: %d %s %v", status, body, err)
	}
	if got := u.workers(); len(stays) > 0 || got["bob"] != before["bob"] {
		t.Errorf("bob's worker was %v and is %v", before, got)
	}
}
