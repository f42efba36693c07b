package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestCommands(t *testing.T) {
	testenv.NeedsLinks(t)
	p := newPolicy(t)
	for name, target := range map[string]string{"out": "/etc", "dangling": "/etc/nosuch"} {
		must.OK(t, os.Symlink(target, filepath.Join(p.folder, name)))
	}
	for want, commands := range map[string][]string{
		"runs in the sandbox without a question": {
			"ls", "ls -la sub", "cat main.go", "head -n 5 main.go", "grep -rn word .", "git status -sb", "git diff --stat HEAD~1",
			"go test ./...", "go test -race -run=Name ./sub/...", "sh -c ls", "bash -lc |ls -l && go test ./... | grep -n FAIL|",
			"cat " + p.folder + "/main.go",
		},
		"the user is asked": {
			"", "make", "git commit", "touch made", "rm -rf sub", "rm ./sub/x", "dangling", "ls --color", "cat /etc/passwd", "cat out/passwd",
			"cat ../x", "cat out/../../x", "cat dangling", "git diff --output=x", "git -C /etc log", "go test -exec=sh .", "go test -exec sh .",
			"go test -toolexec=x .", "go test -run=x -args -o x", "tail -f x", "npm install-test", "./ls", "/tmp/ls", "sh", "sh script", "bash -xc ls",
			"sh -c |ls; rm -rf sub|", "sh -c |ls > x|", "sh -c |ls & rm x|", "sh -c |ls $(rm x)|", "sh -c |ls `rm x`|", "sh -c |ls\nrm x|",
			"sh -c |ls || rm x|", "sh -c |ls |& sh|", "sh -c |ls && |", "sh -c |cat *|", "sh -c |cat ~|", "sh -c |X=1 ls|", "sh -c |cd / && ls|",
			"sh -c |sh -c ls|", "sh -c |", "sh -c |echo 'x'|", "sh -c |{ ls && ls|", "sh -c |! ls|",
		},
		"does not run; the model reads: declined: there is no network here, use the files in " + p.folder: {
			"curl localhost", "/usr/bin/curl localhost", "git push", "git push --force", "go get x", "npm install", "cat http://x",
			"sh -c |ls && git fetch|", "sh -c |wget x | cat|",
		},
		"does not run; the model reads: declined: do not change anything outside of " + p.folder: {
			"rm -rf /", "rm ../x", "touch /tmp/x", "mv x ..", "cp x out/y", "mkdir -p /etc/x", "sh -c |ls && rm /etc/x|",
		},
	} {
		for _, c := range commands {
			words, script, quoted := strings.Cut(c, " |")
			argv := strings.Fields(words)
			if quoted {
				argv = append(argv, strings.TrimSuffix(script, "|"))
			}
			must.Equal(t, fmt.Sprint(argv), want, p.explain(t.Context(), argv))
		}
	}
}

// TestPlaces has a command that the policy allows where it would not be confined to the folder.
func TestPlaces(t *testing.T) {
	p := newPolicy(t)
	for name, tt := range map[string]struct {
		change func(*protocol.ExecApprovalRequest)
		want   bool
	}{
		"in the folder":     {func(*protocol.ExecApprovalRequest) {}, true},
		"without a sandbox": {func(r *protocol.ExecApprovalRequest) { r.Confinable = false }, false},
		"in another folder": {func(r *protocol.ExecApprovalRequest) { r.Cwd = "/" }, false},
	} {
		r := protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: p.folder, Confinable: true}
		tt.change(&r)
		out, decided := p.decide(t.Context(), &approval.Request{Event: r})
		if decided != tt.want || decided && (out.Decision != elicit.Approved || !out.Confined) {
			t.Errorf("%s: %+v, %t", name, out, decided)
		}
	}
}

func TestPatches(t *testing.T) {
	p := newPolicy(t)
	inside, outside := filepath.Join(p.folder, "new", "file"), filepath.Join(p.folder, "..", "file")
	add := protocol.FileChange{Add: &protocol.FileContent{}}
	for name, tt := range map[string]struct {
		cwd     string
		changes map[string]protocol.FileChange
		denied  bool
	}{
		"inside":   {p.folder, map[string]protocol.FileChange{inside: add}, false},
		"relative": {p.folder, map[string]protocol.FileChange{"file": add}, false},
		"nowhere":  {"no/such", map[string]protocol.FileChange{"file": add}, true},
		"outside":  {p.folder, map[string]protocol.FileChange{inside: add, outside: add}, true},
		"moved":    {p.folder, map[string]protocol.FileChange{inside: {Update: &protocol.FileUpdate{MovePath: &outside}}}, true},
	} {
		out, decided := p.decide(t.Context(), &approval.Request{Event: protocol.PatchApprovalRequest{Changes: tt.changes, Cwd: tt.cwd}})
		if decided != tt.denied || decided && out.Decision != elicit.Denied {
			t.Errorf("%s: %+v, %t", name, out, decided)
		}
	}
	if _, decided := p.decide(t.Context(), &approval.Request{Event: protocol.RawEvent{}}); decided {
		t.Error("a question of another kind was decided")
	}
}
