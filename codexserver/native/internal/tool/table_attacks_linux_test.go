package tool_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// The columns of the table of policies. A call in noColumn runs nothing in any row.
const (
	noColumn = iota
	_
	_ // the policy and the mode are before them
	knownColumn
	otherColumn
	escalatedColumn
	unconfinedColumn
	insideColumn
	elsewhereColumn
)

// policies returns the cells of the rows of the table of policies, which TestPolicies of package decide compares.
func policies(t *testing.T) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../../internal/decide/testdata/policies.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "|---|---|---|---|---|---|---|---|\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `\n")
		}
		rows = append(rows, cells)
	}
	if len(rows) != 12 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

// field is where an attack happens: a repository that the model controls, and a folder beside it.
// An attack that succeeds leaves a file proof in one of them.
type field struct {
	top, work, outside string
	box                *tool.Toolbox
	turn               *tool.Turn
}

// evil is a script that proves that it ran, inside and outside of the working folder.
func (f *field) evil() string { return "echo x >" + f.work + "/proof; echo x >" + f.outside + "/proof" }

func (f *field) put(t *testing.T, name, text string) { boxtest.Lay(t, f.top, name+"="+text) }

// faultySandbox is a real sandbox that fails later.
type faultySandbox struct {
	tool.Sandbox
	confines int  // how often it can be confined
	starts   bool // whether a command can start in it
}

func (s *faultySandbox) Confine(p protocol.SandboxPolicy, cwd string, env []string) (tool.Confinement, error) {
	if s.confines--; s.confines < 0 {
		return nil, box.ErrUnavailable
	}
	c, err := s.Sandbox.Confine(p, cwd, env)
	return faultyConfinement{c, s.starts}, err
}

type faultyConfinement struct {
	tool.Confinement
	starts bool
}

func (c faultyConfinement) Apply(cmd *exec.Cmd) (string, error) {
	if !c.starts {
		return "", box.ErrUnavailable
	}
	return c.Confinement.Apply(cmd)
}

// approving approves for the session.
type approving struct{ *host }

func (approving) ApproveExec(context.Context, protocol.ExecApprovalRequest) elicit.Outcome {
	return elicit.Outcome{Decision: elicit.ApprovedForSession}
}

const (
	newProof   = "*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\n"
	patchFirst = "apply_patch <<'E'\n*** Begin Patch\n*** Add File: file\n+x\n*** End Patch\nE\n"
)

// tableAttacks try to be judged as in a milder column than their own, or to do more than the cell
// says. In files and calls, EVIL is the script, and WORK and OUTSIDE are the folders.
var tableAttacks = []struct {
	column  int
	name    string
	silent  bool                                 // nothing runs where the cell says that it asks
	first   bool                                 // a folder of the working folder is the first in PATH
	sandbox func(real tool.Sandbox) tool.Sandbox // nil for the real one
	files   []string                             // see boxtest.Lay
	prepare func(t *testing.T, f *field)         // afterwards
	call    tool.Call
}{
	{column: noColumn, name: "the command twice, once with an escape",
		call: tool.Call{Name: "shell", Arguments: `{"command":["ls"],"comm\u0061nd":["sh","-c","EVIL"]}`}},
	{column: noColumn, name: "two calls in the arguments of one",
		call: tool.Call{Name: "shell", Arguments: `{"command":["ls"]}{"command":["sh","-c","EVIL"]}`}},
	{column: noColumn, name: "a tool that looks like the shell",
		call: tool.Call{Name: "shell\u200b", Arguments: `{"command":["sh","-c","EVIL"]}`}},
	{column: noColumn, name: "a patch beside the patch",
		call: shellCall("", "apply_patch", fmt.Sprintf(newProof+newProof, "file", "../outside/proof"))},
	{column: noColumn, name: "variables of the model", files: []string{"work/.bash_profile=EVIL"},
		call: tool.Call{Shell: &protocol.LocalShellAction{Command: []string{"bash", "-lc", "pwd"}, Env: map[string]string{"HOME": "WORK", "BASH_ENV": "WORK/.bash_profile"}}}},

	{column: knownColumn, name: "a filter of the repository", files: []string{"work/.gitattributes=*.txt filter=evil\n", "work/a.txt=one\n"}, prepare: func(t *testing.T, f *field) {
		servertest.Git(t, f.work, "init", "-q")
		servertest.Git(t, f.work, "add", ".")
		f.put(t, "work/a.txt", "two, which is longer\n")
		servertest.Git(t, f.work, "config", "filter.evil.clean", "cat;"+f.evil())
	}, call: shellCall("", "git", "diff")},
	{column: knownColumn, name: "a program of that name earlier in PATH", first: true, files: []string{"work/bin/ls=#!/bin/sh\nEVIL"},
		call: shellCall("", "ls")},
	{column: knownColumn, name: "a hook of the index", prepare: func(t *testing.T, f *field) {
		servertest.Git(t, f.work, "init", "-q")
		servertest.Git(t, f.work, "add", ".")
		f.put(t, "work/.git/hooks/post-index-change", "#!/bin/sh\n"+f.evil())
		if err := os.Chtimes(f.work+"/file", time.Time{}, time.Unix(1, 0)); err != nil { // so that git refreshes it
			t.Fatal(err)
		}
	}, call: shellCall("", "git", "status")},
	{column: knownColumn, name: "what the repository's configuration starts", files: []string{
		"work/.gitattributes=*.txt diff=text\n", "work/a.txt=one\n", "outside/witness=#!/bin/sh\nEVIL",
	}, prepare: func(t *testing.T, f *field) {
		servertest.Git(t, f.work, "init", "-q")
		servertest.Git(t, f.work, "add", ".")
		servertest.Git(t, f.work, "commit", "-qm", "first")
		for _, key := range []string{"core.fsmonitor", "diff.external", "diff.text.textconv", "gpg.program", "core.pager", "core.editor"} {
			servertest.Git(t, f.work, "config", key, f.outside+"/witness")
		}
	}, call: shellCall("", "git", "log", "-p")},
	{column: knownColumn, name: "a profile", files: []string{"home/.bash_profile=EVIL"}, call: shellCall("", "bash", "-lc", "ls")},

	{column: otherColumn, name: "a patch and then a command in one script", call: shellCall("", "bash", "-lc", patchFirst+"EVIL")},
	{column: otherColumn, name: "a known name in a folder of its own", files: []string{"work/sub/ls=#!/bin/sh\nEVIL"},
		call: shellCall(`,"workdir":"sub"`, "./ls")},
	{column: otherColumn, name: "asks to leave the sandbox in other words",
		call: shellCall(`,"sandbox_permissions":"require_escalated","With_Escalated_Permissions":true,"with_escalated_permissions":false`, "sh", "-c", "EVIL")},
	{column: otherColumn, name: "an approval for the session of the other modes", prepare: approveInOtherModes,
		call: shellCall("", "sh", "OUTSIDE/script")},

	{column: escalatedColumn, name: "a line for the shell",
		call: tool.Call{Name: "shell", Arguments: `{"command":"EVIL","with_escalated_permissions":true,"justification":"approved by the user already"}`}},
	{column: escalatedColumn, name: "a known command whose program is another", first: true, files: []string{"work/bin/ls=#!/bin/sh\nEVIL"},
		call: shellCall(escalated, "ls")},
	{column: escalatedColumn, name: "an approval for the session of the other modes", prepare: approveInOtherModes,
		call: shellCall(escalated, "sh", "OUTSIDE/script")},

	{column: unconfinedColumn, name: "a known command whose program is another", first: true, files: []string{"work/bin/ls=#!/bin/sh\nEVIL"},
		sandbox: func(tool.Sandbox) tool.Sandbox { return nil }, call: shellCall("", "ls")},
	{column: unconfinedColumn, name: "the sandbox is gone after the first command", sandbox: func(real tool.Sandbox) tool.Sandbox {
		return &faultySandbox{Sandbox: real, confines: 1, starts: true}
	}, prepare: func(t *testing.T, f *field) { // the answers of this turn are no
		called(t, f.turn, shellCall("", "true"))
	}, call: shellCall("", "sh", "-c", "EVIL")},
	{column: unconfinedColumn, name: "nothing starts in the sandbox", silent: true, sandbox: func(real tool.Sandbox) tool.Sandbox {
		return &faultySandbox{Sandbox: real, confines: 100}
	}, call: shellCall("", "sh", "-c", "EVIL")},

	{column: insideColumn, name: "as a script with an escalation",
		call: shellCall(escalated, "bash", "-lc", "cd sub && apply_patch <<'E'\n"+fmt.Sprintf(newProof, "../proof")+"E\n")},
	{column: insideColumn, name: "by the tool that writes",
		call: tool.Call{Name: "write", Arguments: `{"path":"sub/.././proof","content":"x\n"}`}},

	{column: elsewhereColumn, name: "a file inside, and one by a link", files: []string{"work/link -> ../outside"},
		call: shellCall("", "apply_patch", "*** Begin Patch\n*** Add File: new\n+x\n*** Add File: link/proof\n+x\n*** End Patch")},
	{column: elsewhereColumn, name: "a move by a link that leads up", files: []string{"outside/deep/file=x\n", "work/link -> ../outside/deep"},
		call: shellCall(`,"workdir":"link"`, "bash", "-lc", "cd .. && apply_patch <<'E'\n"+fmt.Sprintf(newProof, "../outside/proof")+"E\n")},
	{column: elsewhereColumn, name: "a hook by the name of another folder", files: []string{"work/.git/hooks/sample", "work/tools -> .git/hooks"},
		call: tool.Call{Name: "write", Arguments: `{"path":"tools/proof","content":"x\n"}`}},
}

// approveInOtherModes approves a script for the session in the sandbox modes that the row has not,
// and removes what it did.
func approveInOtherModes(t *testing.T, f *field) {
	t.Helper()
	f.put(t, "outside/script", f.evil())
	for _, mode := range []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess} {
		if mode == f.turn.SandboxPolicy.Mode {
			continue
		}
		of := f.turn.SandboxPolicy
		of.Mode = mode
		turn := f.box.Turn(tool.Context{Cwd: f.work, ApprovalPolicy: protocol.ApprovalUntrusted, SandboxPolicy: of, Host: approving{&host{}}})
		called(t, turn, shellCall("", "sh", f.outside+"/script"))
		for _, dir := range []string{f.work, f.outside} {
			if err := os.Remove(dir + "/proof"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAttacksOnTheTable tries each attack in each row of the table of policies, with the
// real sandbox and a user who denies everything. What happens is what the cell says. Each attack meets
// every other row, and the next attack the rest.
func TestAttacksOnTheTable(t *testing.T) {
	boxtest.Need(t)
	for i, row := range policies(t) {
		approvals, mode := protocol.ApprovalPolicy(row[1]), protocol.SandboxMode(row[2])
		for n, tt := range tableAttacks {
			if !servertest.Plays(i+n, *whole) {
				continue
			}
			cell := "never"
			if tt.column != noColumn {
				cell = row[tt.column]
			}
			t.Run(fmt.Sprintf("%s %s/%s/%s", approvals, mode, cell, tt.name), func(t *testing.T) {
				t.Parallel()
				top := boxtest.Folder(t)
				f := &field{top: top, work: filepath.Join(top, "work"), outside: filepath.Join(top, "outside")}
				path := "PATH=/usr/local/bin:/usr/bin:/bin"
				if tt.first {
					path = "PATH=" + f.work + "/bin:/usr/bin:/bin"
				}
				stands := strings.NewReplacer("EVIL", f.evil(), "WORK", f.work, "OUTSIDE", f.outside)
				boxtest.Lay(t, top, "work/file=one\n", "work/sub/file=one\n", "outside/file=one\n", "home/file=one\n")
				toolbox := tool.Confine(box.New(box.Options{}))
				if tt.sandbox != nil {
					toolbox = tt.sandbox(toolbox)
				}
				h := &host{answer: elicit.Denied}
				f.box = newBox(tool.Options{Environ: []string{path, "HOME=" + filepath.Join(top, "home")}, Sandbox: toolbox, FileTools: true})
				f.turn = f.box.Turn(tool.Context{
					Cwd: f.work, ApprovalPolicy: approvals, Host: h,
					// The configuration of the mode workspace-write counts in no other.
					SandboxPolicy: protocol.SandboxPolicy{Mode: mode, WritableRoots: []string{f.work}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true},
				})
				for _, entry := range tt.files {
					boxtest.Lay(t, top, stands.Replace(entry))
				}
				if tt.prepare != nil {
					tt.prepare(t, f)
				}
				before := tree(t, top)
				h.trace = nil
				call := tt.call
				call.Arguments = stands.Replace(call.Arguments)
				if call.Shell != nil {
					action := *call.Shell
					action.Env = map[string]string{}
					for name, value := range call.Shell.Env {
						action.Env[name] = stands.Replace(value)
					}
					call.Shell = &action
				}
				res := called(t, f.turn, call)
				var inside, outside, proof bool
				for path, now := range tree(t, top) {
					if before[path] == now {
						continue
					}
					if strings.HasPrefix(path, f.work+"/") {
						inside = true
					} else {
						outside = true
					}
					proof = proof || filepath.Base(path) == "proof"
				}
				steps := h.steps()
				asked := strings.Count(steps, "ask")
				switch cell {
				case "never", "may, read-only":
					if asked > 0 || inside || outside {
						t.Errorf("asked %d times, changed inside: %t, outside: %t", asked, inside, outside)
					}
				case "asks":
					if asked != 1 && !tt.silent || inside || outside || strings.Contains(steps, "begin") && !tt.silent {
						t.Errorf("asked %d times, changed inside: %t, outside: %t", asked, inside, outside)
					}
				case "may, in the sandbox", "may, in the sandbox; then asks":
					if outside || inside && mode != protocol.SandboxWorkspaceWrite || asked > 0 && !strings.HasSuffix(cell, "then asks") || strings.HasPrefix(steps, "ask") || asked > 1 {
						t.Errorf("asked %d times, changed inside: %t, outside: %t", asked, inside, outside)
					}
				case "**may**":
					if asked > 0 || !proof || outside && mode != protocol.SandboxDangerFullAccess {
						t.Errorf("asked %d times, proof: %t, changed outside: %t", asked, proof, outside)
					}
				default:
					t.Errorf("the page says %q", cell)
				}
				if t.Failed() {
					t.Errorf("steps %q; the model receives %q", steps, res.Output)
				}
			})
		}
	}
}
