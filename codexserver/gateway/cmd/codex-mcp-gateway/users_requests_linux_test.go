package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// picture is a file that is sent to a model as an image.
const picture = "\x89PNG\r\n\x1a\n secret of bob"

// TestEndToEndUsersRequests checks that requests of ann cannot reach files and conversations
// of bob, by paths, ids, or links in ann's own folder.
func TestEndToEndUsersRequests(t *testing.T) {
	held := make(chan struct{})
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		prompt := r.LastUserText()
		if strings.HasPrefix(prompt, "wait") {
			turn := providertest.Say("secret of bob")
			turn.Wait = held
			return turn
		}
		tool, path, ok := strings.Cut(prompt, " ")
		switch {
		case !ok || len(r.ToolOutputs()) > 0:
		case tool == "view":
			return providertest.Call(providertest.Tool("c1", "view_image", map[string]any{"path": path}))
		case tool == "patch":
			return providertest.Call(providertest.Shell("c1", "apply_patch", "*** Begin Patch\n*** Add File: "+path+"\n+more\n*** End Patch"))
		}
		return providertest.Say("done")
	}})
	t.Cleanup(model.Close)
	defer close(held)
	u := startUsers(t, model, `[http]
unlocked_arguments = ["sandbox", "config"]
`, "-c", "approval_policy=never", "-c", "sandbox_mode=workspace-write")
	ann, bob := u.as("ann"), u.as("bob")
	own, other := u.work["ann"], u.work["bob"]
	for name, text := range map[string]string{other + "/a.png": picture, other + "/AGENTS.md": "secret of bob", other + "/sub/AGENTS.md": "secret of bob"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository(t, other)
	for name, to := range map[string]string{"link": other, "a.png": other + "/a.png", "AGENTS.md": other + "/AGENTS.md", "linked/.git": other + "/.git"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(own, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(own+"/pointing", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own+"/pointing/.git", []byte("gitdir: "+other+"/.git\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	repository(t, own+"/alternating")
	if err := os.WriteFile(own+"/alternating/.git/objects/info/alternates", []byte(other+"/.git/objects\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	head, err := exec.Command("git", "-C", other, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(string(head))
	if err := os.WriteFile(own+"/alternating/.git/refs/heads/other", head, 0o600); err != nil {
		t.Fatal(err)
	}
	_, body, err := bob.call("hello")
	if err != nil {
		t.Fatal(err)
	}
	thread := member(t, body, "threadId")
	_, begun := bob.ask("tools/call", "codex", `"name":"codex","arguments":{"prompt":"wait"}`)
	task := member(t, begun, "taskId")
	if status, got := bob.ask("tasks/get", task, `"taskId":"`+task+`"`); status != 200 || !strings.Contains(got, `"working"`) {
		t.Fatalf("bob's task: %d %s", status, got)
	}
	if _, got := bob.ask("tools/call", "codex-list", `"name":"codex-list","arguments":{}`); !strings.Contains(got, thread) {
		t.Fatalf("bob's list: %s", got)
	}
	outside := "does not lie in one of the folders"
	for _, tt := range []struct{ name, tool, arguments, want string }{
		{"cwd", "codex", `"prompt":"p","cwd":"` + other + `"`, "/cwd: " + other + " " + outside},
		{"cwd that is not there", "codex", `"prompt":"p","cwd":"` + other + `/absent"`, outside},
		{"cwd of the server", "codex", `"prompt":"p","cwd":"` + u.f.home + `"`, outside},
		{"cwd by a link", "codex", `"prompt":"p","cwd":"` + own + `/link"`, "/cwd: "},
		{"cwd above", "codex", `"prompt":"p","cwd":"` + own + `/.."`, outside},
		{"image", "codex", `"prompt":"p","images":["` + other + `/a.png"]`, "/images/0: "},
		{"image by a link", "codex", `"prompt":"p","images":["a.png"]`, "/images/0: "},
		{"image above", "codex", `"prompt":"p","images":["../bob/a.png"]`, "/images/0: "},
		{"writable root", "codex", `"prompt":"p","sandbox":"workspace-write","config":{"sandbox_workspace_write.writable_roots":["` + other + `"]}`, "/writable_roots/0: "},
		{"writable root by a link", "codex", `"prompt":"p","sandbox":"workspace-write","config":{"sandbox_workspace_write.writable_roots":["link"]}`, "/writable_roots/0: "},
		{"worktree", "codex", `"prompt":"p","worktree":true,"cwd":"` + other + `"`, "/cwd: "},
		{"worktree by a link", "codex", `"prompt":"p","worktree":true,"cwd":"` + own + `/linked"`, `"isError":true`},
		{"worktree by a .git file", "codex", `"prompt":"p","worktree":true,"cwd":"` + own + `/pointing"`, `"isError":true`},
		{"review", "codex-review", `"target":"uncommitted","cwd":"` + other + `"`, "/cwd: "},
		{"review by a .git file", "codex-review", `"target":"commit","commit":"` + commit + `","cwd":"` + own + `/pointing"`, `"isError":true`},
		{"review by alternates", "codex-review", `"target":"commit","commit":"` + commit + `","cwd":"` + own + `/alternating"`, `"isError":true`},
		{"list", "codex-list", ``, `"conversations":[]`},
		{"reply", "codex-reply", `"prompt":"p","threadId":"` + thread + `"`, "no conversation"},
		{"show", "codex-show", `"threadId":"` + thread + `"`, `"isError":true`},
		{"wait", "codex-wait", `"threadIds":["` + thread + `"]`, thread},
		{"interrupt", "codex-interrupt", `"threadId":"` + thread + `"`, "no conversation"},
		{"review in a thread", "codex-review", `"target":"uncommitted","threadId":"` + thread + `"`, "no conversation"},
		{"config", "codex", `"prompt":"config","config":{"sandbox_workspace_write.writable_roots":["` + other + `"],"sandbox_mode":"workspace-write"}`, ""},
		{"view_image", "codex", `"prompt":"view ` + other + `/a.png"`, "done"},
		{"view_image by a link", "codex", `"prompt":"view a.png"`, "done"},
		{"apply_patch", "codex", `"prompt":"patch ` + other + `/new"`, "done"},
		{"apply_patch by a link", "codex", `"prompt":"patch link/new"`, "done"},
		{"AGENTS.md", "codex", `"prompt":"p"`, "done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body := ann.ask("tools/call", tt.tool, `"name":"`+tt.tool+`","arguments":{`+tt.arguments+`}`)
			body = finished(t, ann, body)
			if status != 200 || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), tt.want) {
				t.Errorf("%d %s, want %s", status, body, tt.want)
			}
			if strings.Contains(body, "secret of bob") {
				t.Errorf("it has bob's: %s", body)
			}
		})
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		if status, got := ann.ask(method, task, `"taskId":"`+task+`","inputResponses":{}`); status == 200 && !strings.Contains(got, "no such task") {
			t.Errorf("%s: %d %s", method, status, got)
		}
	}
	// A rollout of bob that is in ann's home, for example from a backup.
	found, err := filepath.Glob(filepath.Join(u.home["bob"], "sessions", "*", "*", "*", "*"+thread+"*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("bob's rollout: %q, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err == nil {
		err = os.WriteFile(strings.Replace(found[0], u.home["bob"], u.home["ann"], 1), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, got := ann.ask("tools/call", "codex-reply", `"name":"codex-reply","arguments":{"prompt":"p","threadId":"`+thread+`"}`); !strings.Contains(got, "/threadId: its folder: "+other+" "+outside) {
		t.Errorf("a rollout of another folder: %s", got)
	}
	for _, r := range model.Requests() {
		body := string(r.Body)
		image := base64.StdEncoding.EncodeToString([]byte(picture))
		if strings.Contains(body, own) && (strings.Contains(body, "secret of bob") || strings.Contains(body, image)) {
			t.Errorf("the model of ann was sent bob's: %.2000s", body)
		}
	}
	if _, err := os.Lstat(other + "/new"); err == nil {
		t.Error("ann has written into bob's folder")
	}
	if status, got := bob.ask("tasks/get", task, `"taskId":"`+task+`"`); status != 200 || !strings.Contains(got, `"working"`) {
		t.Errorf("bob's task afterwards: %d %s", status, got)
	}
}

// finished waits for the result of a call that has become a task, and returns it.
func finished(t *testing.T, s *httpServer, body string) string {
	t.Helper()
	if !strings.Contains(body, `"taskId":"`) {
		return body
	}
	id := member(t, body, "taskId")
	for range 1000 {
		if _, body = s.ask("tasks/get", id, `"taskId":"`+id+`"`); !strings.Contains(body, `"working"`) {
			return body
		}
	}
	t.Fatalf("it does not end: %s", body)
	return ""
}

// repository makes a git repository with a commit.
func repository(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "secret of bob"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatal(fmt.Errorf("git %q: %w: %s", args, err, out))
		}
	}
}
