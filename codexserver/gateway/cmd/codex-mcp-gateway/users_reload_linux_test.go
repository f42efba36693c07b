package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
)

// rewrite changes codex-mcp.toml, sends SIGHUP, and waits until the program says so once more.
func (u *users) rewrite(change func(string) string, says string) {
	u.t.Helper()
	file := filepath.Join(u.f.home, "codex-mcp.toml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(change(string(text))), 0o600)
	}
	before := strings.Count(u.errors(), says)
	if err == nil {
		err = u.cmd.Process.Signal(syscall.SIGHUP)
	}
	if err != nil {
		u.t.Fatal(err)
	}
	until(u.t, "it does not say "+says, func() bool { return strings.Count(u.errors(), says) > before })
}

// TestEndToEndUsersReload changes the users while the server runs and turns of them run.
func TestEndToEndUsersReload(t *testing.T) {
	model, held := waiting(t)
	defer close(held)
	u := startUsers(t, model, "")
	stays := u.begin("bob", model, 1)
	goes := u.begin("ann", model, 2)
	before := u.workers()
	const done = "reloaded the users; their number: "

	const wrong = "http.principals.bob.folders"
	u.rewrite(func(text string) string { return text + "\nhome = \"x\"\n" }, "http.principals.")
	u.rewrite(func(text string) string {
		return strings.Replace(strings.Replace(text, "\nhome = \"x\"\n", "", 1), u.work["bob"], u.work["bob"]+"/none", 1)
	}, wrong)
	if got := u.workers(); len(goes) > 0 || len(stays) > 0 || got["ann"] != before["ann"] || got["bob"] != before["bob"] {
		t.Errorf("a wrong file has changed something: the workers are %v and were %v", got, before)
	}
	if status, body := u.as("ann").ask("tools/call", "codex-list", `"name":"codex-list","arguments":{}`); status != 200 {
		t.Errorf("ann: %d %s", status, body)
	}

	// The token of ann is replaced.
	token, hash := access.NewToken()
	u.rewrite(func(text string) string {
		return strings.Replace(strings.Replace(text, u.work["bob"]+"/none", u.work["bob"], 1), access.Hash(u.tokens["ann"]), hash, 1)
	}, done+"2")
	if got := u.receive(goes); got.err == nil && got.status == 200 && strings.Contains(got.body, "the answer") {
		t.Errorf("the open call of the token that was revoked: %+v", got)
	}
	if status, body := u.as("ann").ask("tools/call", "codex-list", `"name":"codex-list","arguments":{}`); status != http.StatusUnauthorized {
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
