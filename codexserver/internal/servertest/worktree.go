package servertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// CommitWork is a line that changes files of each kind in the repository of [CommitBase], and tries to commit.
const CommitWork = `mkdir new && echo new >new/file && echo more >>shared && mv moved to && rm gone && ` +
	`chmod +x tool && echo x >ignored && printf 'a\r\n' >ends; git commit -qam "by the model" || true`

// CommitSandbox are arguments of a call for [CommitWork]: the repository, which is in a folder for temporary files, can then not be
// written but by the worktree.
const CommitSandbox = `"sandbox":"workspace-write","config":{"sandbox_workspace_write":` +
	`{"exclude_tmpdir_env_var":true,"exclude_slash_tmp":true}}`

// CommitBase lays a repository for [CommitWork] in a folder: with hooks that would fail, and with signing.
func CommitBase(t testing.TB, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"shared": "one\ntwo\nthree\n", "moved": "some\nlines\nof text\n", "gone": "gone\n", "tool": "#!/bin/sh\n",
		".gitignore": "/ignored\n", ".gitattributes": "ends text\n",
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	Git(t, dir, "init", "-q", "-b", "main", "--template=")
	Git(t, dir, "add", "--all")
	Git(t, dir, "commit", "-q", "-m", "first")
	trap := filepath.Join(dir, ".git", "trap")
	script := "#!/bin/sh\ntouch '" + filepath.Join(dir, ".git", "ran") + "'\nexit 1\n"
	must.OK(t, os.Mkdir(trap, 0o755))
	for _, name := range []string{"pre-commit", "commit-msg", "post-commit", "prepare-commit-msg",
		"reference-transaction", "post-index-change", "sign"} {
		must.OK(t, os.WriteFile(filepath.Join(trap, name), []byte(script), 0o755))
	}
	for key, value := range map[string]string{"core.hooksPath": trap, "commit.gpgSign": "true",
		"gpg.program": filepath.Join(trap, "sign")} {
		Git(t, dir, "config", key, value)
	}
}

// WorktreeResult is what a result says of a worktree.
type WorktreeResult struct {
	ThreadID, Status, Content string
	Worktree                  protocol.Worktree
	Changes                   []protocol.Change
}

// CheckCommit checks the result of a call in whose worktree [CommitWork] has run: the commit has what the changes say, and
// nothing else of the repository has changed.
func CheckCommit(t testing.TB, dir, result string) WorktreeResult {
	t.Helper()
	var r struct{ StructuredContent WorktreeResult }
	must.OK(t, json.Unmarshal([]byte(result), &r))
	s := r.StructuredContent
	tree := s.Worktree
	if tree.Commit == "" || !strings.Contains(s.Content, "git merge --squash "+tree.Branch) {
		t.Fatalf("%s", result)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "ran")); err == nil {
		t.Error("a program of the repository ran")
	}
	var changes []string
	for _, c := range s.Changes {
		kind := map[string]string{"add": "A", "update": "M", "delete": "D", "rename": "R"}[c.Kind]
		if c.From != "" {
			c.Path = c.From + "\t" + c.Path
		}
		changes = append(changes, kind+"\t"+c.Path)
	}
	want := "A\tends\nD\tgone\nA\tnew/file\nM\tshared\nR\tmoved\tto\nM\ttool"
	must.Equal(t, "changes", want, strings.Join(changes, "\n"))
	shown := Git(t, dir, "show", "--format=", "--name-status", "--find-renames", tree.Commit)
	must.Equal(t, "the commit", want, strings.ReplaceAll(shown, "R100", "R"))
	must.Equal(t, "its parent", tree.Base, Git(t, dir, "rev-parse", tree.Commit+"^"))
	must.Equal(t, "the branch", tree.Commit, Git(t, dir, "rev-parse", tree.Branch))
	must.Equal(t, "the base", Git(t, dir, "rev-parse", "main"), tree.Base)
	must.Equal(t, "line ends", "a", Git(t, dir, "cat-file", "blob", tree.Commit+":ends"))
	must.Equal(t, "the message", fmt.Sprintf("Do the work\n\nCodex-Thread: %s", s.ThreadID),
		Git(t, dir, "log", "-1", "--format=%B", tree.Commit))
	for _, in := range []string{dir, tree.Path} {
		must.Equal(t, "the status of "+in, "", Git(t, in, "-c", "core.hooksPath="+os.DevNull, "status", "--porcelain"))
	}
	return s
}
