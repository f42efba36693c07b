package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// waiting starts a model. It answers prompts that begin with wait after held is closed.
func waiting(t *testing.T) (model *providertest.Server, held chan struct{}) {
	t.Helper()
	held = make(chan struct{})
	model = providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		turn := providertest.Say("the answer to " + r.LastUserText())
		if strings.HasPrefix(r.LastUserText(), "wait") {
			turn.Wait = held
		}
		return turn
	}})
	t.Cleanup(model.Close)
	return model, held
}

// workers returns the process ids of the workers by user.
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

// reply is the result of a call.
type reply struct {
	status int
	body   string
	err    error
}

// begin sends a call that waits for the model, and returns when the model has n requests.
func (u *users) begin(name string, model *providertest.Server, n int) <-chan reply {
	u.t.Helper()
	got := make(chan reply, 1)
	go func() {
		status, body, err := u.as(name).call("wait")
		got <- reply{status, body, err}
	}()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	if err := model.Await(ctx, n); err != nil {
		u.t.Fatal(err)
	}
	return got
}

func (u *users) receive(got <-chan reply) reply {
	u.t.Helper()
	select {
	case a := <-got:
		return a
	case <-time.After(patience):
		u.t.Fatal("the call does not end")
		return reply{}
	}
}

// TestEndToEndUsersWorkerKilled kills the worker of ann. Bob's worker must continue. Ann must
// get a new one, which continues ann's task.
func TestEndToEndUsersWorkerKilled(t *testing.T) {
	model, held := waiting(t)
	u := startUsers(t, model, "")
	first := u.begin("bob", model, 1)
	_, begun := u.as("ann").ask("tools/call", "codex", `"name":"codex","arguments":{"prompt":"wait"}`)
	task := member(t, begun, "taskId")
	second := u.begin("ann", model, 3)
	before := u.workers()
	if len(before) != 2 {
		t.Fatalf("the workers: %v", before)
	}
	if err := syscall.Kill(before["ann"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := u.receive(second); got.status != http.StatusBadGateway {
		t.Errorf("the call of the worker that was killed: %+v", got)
	}
	// A process that is about to end may accept one more connection without an answer.
	status, body, err := u.as("ann").call("again")
	for deadline := time.Now().Add(patience); status == http.StatusBadGateway && time.Now().Before(deadline); {
		status, body, err = u.as("ann").call("again")
	}
	if status != 200 || err != nil || !strings.Contains(body, "the answer to again") {
		t.Errorf("the next call: %d %s %v", status, body, err)
	}
	poll := func() string {
		_, got := u.as("ann").ask("tasks/get", task, `"taskId":"`+task+`"`)
		return got
	}
	if got := poll(); !strings.Contains(got, `"status":"working"`) {
		t.Errorf("the task of the worker that was killed: %s", got)
	}
	close(held)
	until(t, "the task of the worker that was killed does not end", func() bool { return strings.Contains(poll(), "the answer to wait") })
	if got := u.receive(first); got.status != 200 || !strings.Contains(got.body, "the answer to wait") {
		t.Errorf("the call of the other worker: %+v", got)
	}
	if after := u.workers(); after["bob"] != before["bob"] || after["ann"] == before["ann"] {
		t.Errorf("the workers were %v and are %v", before, after)
	}
}

// TestEndToEndUsersStart checks that a failed start of a worker is reported, and that the
// worker starts when the cause is gone.
func TestEndToEndUsersStart(t *testing.T) {
	model, _ := waiting(t)
	u := startUsers(t, model, "")
	file := filepath.Join(u.f.home, "codex-mcp.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append([]byte("broken\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, body, err := u.as("ann").call("hello"); status != 503 || err != nil || strings.Contains(body, "broken") {
		t.Errorf("with a broken file: %d %s %v", status, body, err)
	}
	until(t, "the log does not say why", func() bool {
		return strings.Contains(u.errors(), "principal=ann") && strings.Contains(u.errors(), "codex-mcp.toml:1")
	})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(u.work["bob"], u.work["bob"]+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(u.work["ann"], u.work["bob"]); err != nil {
		t.Fatal(err)
	}
	if status, _, err := u.as("bob").call("hello"); err != nil {
		t.Errorf("with a link: %d %v", status, err)
	}
	if status, body, err := u.as("nobody").call("hello"); status != 401 || err != nil {
		t.Errorf("without a token: %d %s %v", status, body, err)
	}
}

// TestEndToEndUsersRefused checks that the server does not start if it cannot isolate its
// users.
func TestEndToEndUsersRefused(t *testing.T) {
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	enclosuretest.Need(t)
	top := boxtest.Outside(t)
	hash := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	for _, dir := range []string{"/ann", "/ann/inner", "/bob", "/home", "/user"} {
		if err := os.Mkdir(top+dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(top+"/ann/inner", top+"/link"); err != nil {
		t.Fatal(err)
	}
	codexMCP, err := os.ReadFile(filepath.Join(dir, "codex-mcp"))
	if err == nil {
		err = os.WriteFile(top+"/ann/codex-mcp", codexMCP, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := folders{home: top + "/home", cwd: top, user: top + "/user"}
	for name, tt := range map[string]struct {
		ann, bob string
		args     []string
		want     string
	}{
		"a link into another's folder":           {`folders = ["TOP/ann"]`, `folders = ["TOP/link"]`, nil, "lies in " + top + "/ann of ann"},
		"a program in a folder that is a user's": {`folders = ["TOP/ann"]`, `folders = ["TOP/bob"]`, []string{"--codex-mcp", top + "/ann/codex-mcp"}, "http.principals.ann.folders: "},
		"a system without namespaces":            {`folders = ["TOP/ann"]`, `folders = ["TOP/bob"]`, nil, "cannot keep several users apart"},
		"a record in a folder that is a user's":  {`folders = ["TOP/ann"]`, `folders = ["TOP/bob"]`, []string{"-c", "approvals.log=" + top + "/ann/log"}, "approvals.log: commands of ann can write on the way to "},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(fmt.Sprintf("[http.principals.ann]\ntokens = [%q]\n%s\n[http.principals.bob]\ntokens = [%q]\n%s\n", hash("a"), tt.ann, hash("b"), tt.bob), "TOP", top)
			if err := os.WriteFile(f.home+"/codex-mcp.toml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(filepath.Join(dir, program), append([]string{"--engine", "native", "--listen", "127.0.0.1:0"}, tt.args...)...)
			if name == "a system without namespaces" {
				cmd = exec.Command("unshare", append([]string{"-Ur", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"`}, cmd.Args...)...)
			}
			p := launch(t, f, cmd)
			if code := p.wait(); code != 1 || !strings.Contains(p.errors(), tt.want) || strings.Contains(p.errors(), "serving MCP") {
				t.Errorf("status %d: %s, want %s", code, p.errors(), tt.want)
			}
		})
	}
}
