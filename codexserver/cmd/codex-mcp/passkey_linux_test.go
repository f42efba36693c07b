package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey/passkeytest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// required are the flags of a server whose approvals need a passkey.
var required = []string{"-c", "approvals.where=page", "-c", "approvals.passkey=true"}

// passkeyCommand runs codex-mcp passkey and returns its exit status and what it printed.
func passkeyCommand(t *testing.T, f folders, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(t), append([]string{"passkey"}, args...)...)
	cmd.Env = []string{"HOME=" + f.user, "CODEX_HOME=" + f.home, detector()}
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// addAtTerminal registers the key of a device by codex-mcp passkey add, at a terminal. It returns the
// origin of the link.
func addAtTerminal(t *testing.T, f folders, d *passkeytest.Device, args ...string) string {
	t.Helper()
	person, screen := newTerminal(t)
	cmd := exec.CommandContext(t.Context(), built(t), append([]string{"passkey", "add"}, args...)...)
	cmd.Env = []string{"HOME=" + f.user, "CODEX_HOME=" + f.home, detector()}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = screen, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(person)
	link, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	origin, secret, ok := strings.Cut(strings.TrimSpace(link), "/passkey.html#")
	if !ok {
		t.Fatalf("no link: %q", link)
	}
	v := &visitor{t: t, origin: origin}
	var options struct{ Challenge passkey.Bytes }
	if err := json.NewDecoder(v.do(http.MethodPost, "/passkey/begin", map[string]string{"secret": secret}).Body).Decode(&options); err != nil {
		t.Fatal(err)
	}
	if r := v.do(http.MethodPost, "/passkey/add", d.Create(origin, options.Challenge)); r.StatusCode != http.StatusOK {
		t.Fatal(r.Status)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return origin
}

// TestEndToEndPasskey registers a passkey. A server then runs a command that a person approved with it,
// and none that the client or a visitor of the page approves without it. The record proves the approval.
func TestEndToEndPasskey(t *testing.T) {
	for _, tt := range []struct {
		name string
		made bool
	}{{"signed", true}, {"unsigned", false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "approvals.log")
			s, f, _ := startWithPage(t, start, `{"elicitation":{}}`, append([]string{"-c", "approvals.log=" + record}, required...)...)
			told := s.expect(map[string]any{"method": "notifications/message", "params": map[string]any{"level": "warning"}}, map[int]bool{})
			link := strings.Fields(dig(t, told, "params.data")[strings.Index(dig(t, told, "params.data"), "http://localhost:"):])[0]
			v := visit(t, strings.Trim(link, `"`))
			q := v.await("open")
			path := fmt.Sprintf("/questions/%d", q.ID)
			if !strings.Contains(s.errors(), "nothing can be approved: approvals.passkey is set, and no passkey is registered") {
				t.Errorf("no warning in %s", s.errors())
			}
			d := passkeytest.New(t, "ES256")
			if r := v.do(http.MethodPost, path+"/sign", map[string]string{"decision": "approved"}); r.StatusCode != http.StatusForbidden {
				t.Errorf("a challenge without a passkey: %s", r.Status)
			}
			addAtTerminal(t, f, d, "my", "laptop")
			if r := v.do(http.MethodPost, path, json.RawMessage(`{"action":"accept"}`)); r.StatusCode != http.StatusForbidden {
				t.Errorf("an approval without a signature: %s", r.Status)
			}
			s.send(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`) // the client was not asked
			if tt.made {
				var in struct{ Challenge passkey.Bytes }
				if err := json.NewDecoder(v.do(http.MethodPost, path+"/sign", map[string]string{"decision": "approved"}).Body).Decode(&in); err != nil {
					t.Fatal(err)
				}
				proof, err := json.Marshal(d.Sign(v.origin, in.Challenge))
				if err != nil {
					t.Fatal(err)
				}
				v.answer(q.ID, fmt.Sprintf(`{"action":"accept","proof":%s}`, proof))
			} else {
				v.answer(q.ID, `{"action":"decline"}`)
			}
			s.expect(map[string]any{"id": 1.0, "result": "*"}, map[int]bool{})
			if _, err := os.Stat(filepath.Join(f.cwd, "made")); (err == nil) != tt.made {
				t.Errorf("the folder: %v", err)
			}
			s.stdin.Close()
			if code := s.wait(); code != 0 {
				t.Errorf("exit status %d", code)
			}
			var out bytes.Buffer
			status := run(t.Context(), "codex-mcp", []string{"log", "verify", record}, &out, &out)
			words := "signed by the passkey " + (&passkey.Key{PublicKey: d.COSE()}).Fingerprint() + ": 1\n"
			if status != 0 || strings.Contains(out.String(), words) != tt.made {
				t.Errorf("status %d, want %q: %t\n%s", status, words, tt.made, &out)
			}
		})
	}
}

// TestEndToEndPasskeyAsk has a task at a terminal's command: it says where to decide, and does not ask
// itself.
func TestEndToEndPasskeyAsk(t *testing.T) {
	f, d := newFolders(t), passkeytest.New(t, "ES256")
	model := providertest.New(providertest.Call(providertest.Shell("c", "mkdir", "made")), providertest.Say("hello"))
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"untrusted\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	addAtTerminal(t, f, d)
	ask := launch(t, f, exec.Command(built(t), append([]string{"-engine", "native", "ask", "make a folder"}, required...)...))
	var link string
	until(t, "no link", func() bool {
		_, rest, _ := strings.Cut(ask.errors(), "see and decide at ")
		var ok bool
		link, _, ok = strings.Cut(rest, "\n")
		return ok
	})
	v := visit(t, link)
	q := v.await("open")
	var in struct{ Challenge passkey.Bytes }
	if err := json.NewDecoder(v.do(http.MethodPost, fmt.Sprintf("/questions/%d/sign", q.ID), map[string]string{"decision": "approved"}).Body).Decode(&in); err != nil {
		t.Fatal(err)
	}
	proof, err := json.Marshal(d.Sign(v.origin, in.Challenge))
	if err != nil {
		t.Fatal(err)
	}
	v.answer(q.ID, fmt.Sprintf(`{"action":"accept","proof":%s}`, proof))
	if code := ask.wait(); code != 0 || strings.Contains(ask.errors(), "[y]") {
		t.Errorf("exit status %d: %s", code, ask.errors())
	}
	if _, err := os.Stat(filepath.Join(f.cwd, "made")); err != nil {
		t.Errorf("the command did not run: %v", err)
	}
	t.Log(ask.errors())
}

// TestPasskeyCommand lists, adds and removes passkeys.
func TestPasskeyCommand(t *testing.T) {
	f := newFolders(t)
	expect := func(want string, code int, args ...string) {
		t.Helper()
		if got, out := passkeyCommand(t, f, args...); got != code || !strings.Contains(out, want) {
			t.Errorf("%q: exit status %d, %s; want %d, %q", args, got, out, code, want)
		}
	}
	expect("no passkeys are registered\n"+unrequired, 0)
	expect(errNoTerminal.Error(), 1, "add")
	expect("want the number of a passkey", 2, "remove", "x")
	expect("there is no passkey 1", 1, "remove", "1")
	if origin := addAtTerminal(t, f, passkeytest.New(t, "EdDSA"), "my", "laptop"); !strings.HasPrefix(origin, "http://localhost:") {
		t.Errorf("the link is at %s", origin)
	}
	port := freePort(t) // taken, by a server
	s := start(t, f, append([]string{"-engine", "native", "-c", "approvals.page_port=" + port}, required...)...)
	until(t, "no page", func() bool { return strings.Contains(s.errors(), "see and decide at http://localhost:"+port+"/#") })
	d := passkeytest.New(t, "RS256")
	if origin := addAtTerminal(t, f, d, append(required, "-c", "approvals.page_port="+port)...); strings.HasSuffix(origin, ":"+port) {
		t.Errorf("two pages at %s", origin)
	}
	s.stdin.Close()
	if code := s.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	expect("   1  my laptop\n      for localhost, registered ", 0)
	expect("   2  passkey 2\n      for localhost, registered ", 0, required...)
	expect("EdDSA, stays on its device, key ", 0)
	expect("removed passkey 1, my laptop, for localhost\n", 0, append([]string{"remove", "1"}, required...)...)
	expect("It was the last one for localhost: nothing can be approved there, until codex-mcp passkey add", 0, append([]string{"remove", "2"}, required...)...)
	if err := os.WriteFile(passkey.File(f.home), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("passkeys.json", 1)
	s = start(t, f, append([]string{"-engine", "native"}, required...)...)
	if code := s.wait(); code != 1 || !strings.Contains(s.errors(), "passkeys.json") {
		t.Errorf("a server with a broken file: %d %s", code, s.errors())
	}
}

// TestPasskeySettings checks what a server does with the setting before it serves: the terminal is not
// asked, commands get no folder that holds the file, and a worker of the gateway refuses it.
func TestPasskeySettings(t *testing.T) {
	home := t.TempDir()
	getenv := func(name string) string { return map[string]string{"CODEX_HOME": home}[name] }
	for _, set := range []bool{false, true} {
		o := &options{overrides: []string{"approvals.where=page", fmt.Sprintf("approvals.passkey=%t", set)}}
		c, err := configure(o, getenv, withPage(t).log)
		if err != nil {
			t.Fatal(err)
		}
		if guards := slices.Contains(c.guarded, passkey.File(home)); guards != set {
			t.Errorf("passkey=%t: the file is guarded: %t", set, guards)
		}
		if where := c.asking().Of(terminal.ClientName); (where == "page") != set {
			t.Errorf("passkey=%t: the terminal is asked at %s", set, where)
		}
		if err := c.withoutServer(); errors.Is(err, errWorkerPasskey) != set {
			t.Errorf("passkey=%t: a worker: %v", set, err)
		}
	}
}
