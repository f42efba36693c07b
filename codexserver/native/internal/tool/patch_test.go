//go:build unix

package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

const addNew = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"

func TestPatchForms(t *testing.T) {
	arguments := must.Get(json.Marshal(map[string]string{"input": addNew}))(t)
	heredoc := "apply_patch <<'EOF'\n" + addNew + "\nEOF\n"
	for _, tt := range []struct {
		name, path string
		call       tool.Call
	}{
		{"function", "new.txt", tool.Call{Name: "apply_patch", Arguments: string(arguments)}},
		{"free text", "new.txt", tool.Call{Name: "apply_patch", Arguments: addNew, Custom: true}},
		{"program", "new.txt", shellCall("", "apply_patch", addNew)},
		{"working folder", "sub/new.txt", shellCall(`,"workdir":"sub"`, "apply_patch", addNew)},
		{"script", "new.txt", shellCall("", "bash", "-lc", heredoc)},
		{"script with folder", "sub/new.txt", shellCall("", "bash", "-lc", "cd sub && "+heredoc)},
		{"the model's own shell", "new.txt", tool.Call{Shell: &protocol.LocalShellAction{Command: []string{"apply_patch", addNew}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			turn, h := begin(t, dir)
			res, err := turn.Call(t.Context(), tt.call)
			if err != nil || !strings.HasPrefix(res.Output, `{"output":"Success. Updated the following files:\nA new.txt\n","metadata":{"exit_code":0,`) {
				t.Errorf("%q, %v", res.Output, err)
			}
			if b, err := os.ReadFile(filepath.Join(dir, tt.path)); err != nil || string(b) != "x\n" {
				t.Errorf("%q, %v", b, err)
			}
			must.Equal(t, "steps", "patch begin auto=true, patch end true, diff", h.steps())
		})
	}
}

// TestPatchByAProgram checks that the model learns how to apply a patch when it tries a program.
func TestPatchByAProgram(t *testing.T) {
	for script, want := range map[string]bool{"true | apply_patch": true, "exec apply_patch x": true, "apply_patch x; echo on": true, "no-such-program": false, "true # apply_patch": false} {
		turn, _ := begin(t, t.TempDir())
		res, err := turn.Call(t.Context(), shellCall("", "sh", "-c", script))
		if err != nil || strings.Contains(res.Output, "call it alone") != want {
			t.Errorf("%s: %q, %v", script, res.Output, err)
		}
	}
}

func TestPatchThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"*** Begin Patch\n*** Add File: a\n+x\n":                                                 "invalid patch: line 3: ",
		"*** Begin Patch\n*** End Patch":                                                         "patch rejected: ",
		"*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n@@\n-x\n+y\n*** End Patch":    "the patch does not fit: ",
		"*** Begin Patch\n*** Add File: c\n+x\n*** Update File: c\n@@\n-nope\n+y\n*** End Patch": "the patch does not fit: ",
		"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: missing\n*** End Patch":          "the patch does not fit: ",
		"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n context\n-old\n*** End Patch": "the patch does not fit: ",
	} {
		turn, h := begin(t, dir)
		res, err := turn.Call(t.Context(), tool.Call{Name: "apply_patch", Arguments: text, Custom: true})
		if err != nil || !strings.HasPrefix(res.Output, want) {
			t.Errorf("%q: %q, %v", text, res.Output, err)
		}
		must.Equal(t, text+": steps", "", h.steps())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files %v, %v", entries, err)
	}
}

func TestTurnDiff(t *testing.T) {
	dir := t.TempDir()
	boxtest.Lay(t, dir, ".git/objects/", ".git/refs/", ".git/HEAD=ref: refs/heads/main\n")
	for name, content := range map[string]string{"a.txt": "one\ntwo\nthree\n", "del.txt": "bye\n", "m.txt": "1\n2\n"} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)) // not to be executed
	}
	turn, _ := begin(t, dir)
	if got := turn.UnifiedDiff(); got != "" {
		t.Errorf("before: %q", got)
	}
	for _, text := range []string{
		"*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Delete File: del.txt\n*** End Patch",
		"*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+TWO\n*** Update File: new.txt\n@@\n hello\n+world\n*** Update File: m.txt\n*** Move to: n.txt\n@@\n-2\n+3\n*** End Patch",
	} {
		res, err := turn.Call(t.Context(), tool.Call{Name: "apply_patch", Arguments: text, Custom: true})
		if err != nil || !strings.HasPrefix(res.Output, `{"output":"Success`) {
			t.Fatalf("%q, %v", res.Output, err)
		}
	}
	want := must.Get(os.ReadFile("testdata/turn.diff"))(t)
	must.Equal(t, "diff", string(want), turn.UnifiedDiff())
}

// watcher records questions, and acts while they are open.
type watcher struct {
	*host
	during func()
	patch  *approval.Patch
	exec   *approval.Command
}

func (w *watcher) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	switch s := s.(type) {
	case approval.Command:
		w.exec = &s
	case approval.Patch:
		w.patch = &s
	}
	w.during()
	return w.host.Ask(ctx, s)
}

// workspace creates a working folder. It has a folder plain, and links notes.txt and sub to a
// file and a folder next to the working folder.
func workspace(t *testing.T) (work, outside string) {
	t.Helper()
	top := boxtest.Folder(t)
	boxtest.Lay(t, top, "work/plain/file=one\n", "outside/rc=one\n", "work/notes.txt -> ../outside/rc", "work/sub -> @/outside")
	return filepath.Join(top, "work"), filepath.Join(top, "outside")
}

const changeOne = "\n@@\n-one\n+two\n*** End Patch"

// TestPatchQuestionShowsThePlace checks that a question names the real place of a write through links.
func TestPatchQuestionShowsThePlace(t *testing.T) {
	work, outside := workspace(t)
	linked := filepath.Join(filepath.Dir(work), "linked")
	must.OK(t, os.Symlink(work, linked))
	for _, tt := range []struct {
		name, cwd, dir, head string
		want                 map[string]string // shown path to written path
	}{
		{"a file", work, "", "Update File: notes.txt", map[string]string{outside + "/rc": work + "/notes.txt"}},
		{"a folder", work, "", "Update File: sub/rc", map[string]string{outside + "/rc": work + "/sub/rc"}},
		{"the patch's folder", work, `,"workdir":"sub"`, "Update File: rc", map[string]string{outside + "/rc": work + "/sub/rc"}},
		{"no link", work, "", "Update File: plain/file", map[string]string{work + "/plain/file": ""}},
		{"a linked working folder", linked, "", "Update File: plain/file", map[string]string{linked + "/plain/file": ""}},
		{"a link in it", linked, "", "Update File: notes.txt", map[string]string{outside + "/rc": linked + "/notes.txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, policy := range []protocol.ApprovalPolicy{protocol.ApprovalUntrusted, protocol.ApprovalOnFailure} {
				w := &watcher{host: &host{answer: elicit.Approved}, during: func() {}}
				turn := turnOf(tool.Options{Environ: environ}, w, tt.cwd, policy, protocol.SandboxReadOnly)
				for _, back := range []string{"", "restore"} { // the second call puts the file back
					text := "*** Begin Patch\n*** " + tt.head + changeOne
					if back != "" {
						text = strings.NewReplacer("-one", "-two", "+two", "+one").Replace(text)
					}
					if res, err := turn.Call(t.Context(), shellCall(tt.dir, "apply_patch", text)); err != nil || !strings.HasPrefix(res.Output, `{"output":"Success`) {
						t.Fatalf("%q, %v", res.Output, err)
					}
				}
				if policy == protocol.ApprovalOnFailure { // asks to leave the sandbox
					for shown, written := range tt.want {
						if got := strings.Contains(w.exec.Reason, written+" → "+shown+" (outside the workspace)"); written != "" && (!got || !w.exec.FromEngine) {
							t.Errorf("the question says %q", w.exec.Reason)
						}
					}
					continue
				}
				got := map[string]string{}
				for path := range w.patch.Changes {
					got[path] = w.patch.Links[path]
				}
				must.Equal(t, "result", tt.want, got)
			}
		})
	}
}

// TestPatchQuestionSaysWhatIsLost applies patches that destroy something. Each question says so, also the one to leave the sandbox,
// which shows the text of the patch, and with no question the event and what the model is told.
func TestPatchQuestionSaysWhatIsLost(t *testing.T) {
	const toPlain = "Update File: note\n*** Move to: plain/file\n@@\n-two\n+2\n*** End Patch"
	for _, tt := range []struct{ name, head, question, sandbox, output string }{
		{"replaces", "Add File: plain/file\n+x\n*** End Patch", "- replace `W/plain/file` (+1 -1)\n-one\n+x", "It replaces W/plain/file (1 line lost).", "M plain/file"},
		{"replaces through a link", "Add File: notes.txt\n+x\n*** End Patch", "- replace `W/notes.txt` → `O/rc` (outside the workspace) (+1 -1)\n-one\n+x",
			"It replaces O/rc (1 line lost).", "M notes.txt"},
		{"moves over", toPlain, "- delete `W/note` (+0 -1): it moves over W/plain/file\n-two\n- replace `W/plain/file` (+1 -1)\n-one\n+2",
			"It deletes W/note (1 line), replaces W/plain/file (1 line lost).", "M plain/file"},
		{"deletes", "Delete File: note\n*** End Patch", "- delete `W/note` (+0 -1)\n-two", "It deletes W/note (1 line).", "D note"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, policy := range []protocol.ApprovalPolicy{protocol.ApprovalUntrusted, protocol.ApprovalOnFailure, protocol.ApprovalNever} {
				work, outside := workspace(t)
				must.OK(t, os.WriteFile(filepath.Join(work, "note"), []byte("two\n"), 0o600))
				short := strings.NewReplacer(work, "W", outside, "O")
				mode := protocol.SandboxReadOnly
				if policy == protocol.ApprovalNever {
					mode = protocol.SandboxDangerFullAccess
				}
				w := &watcher{host: &host{answer: elicit.Approved}, during: func() {}}
				turn := turnOf(tool.Options{Environ: environ}, w, work, policy, mode)
				res := called(t, turn, shellCall("", "apply_patch", "*** Begin Patch\n*** "+tt.head))
				if !strings.Contains(res.Output, tt.output+`\n"`) {
					t.Errorf("%s: the model is told %q", policy, res.Output)
				}
				lost := 0
				for _, m := range w.all {
					if begin, ok := m.(protocol.PatchApplyBegin); ok {
						lost = 0 // the last one counts
						for _, c := range begin.Changes {
							if c.Delete != nil || c.Replaces() {
								lost++
							}
						}
					}
				}
				must.Equal(t, "files lost, by the event", strings.Count(tt.sandbox, "line"), lost)
				switch policy {
				case protocol.ApprovalUntrusted:
					var lines []string
					for line := range strings.SplitSeq(w.patch.Question("", "").Message, "\n") {
						if line = strings.TrimPrefix(line, approval.DiffIndent); strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
							lines = append(lines, short.Replace(line))
						}
					}
					must.Equal(t, "the question", tt.question, strings.Join(lines, "\n"))
				case protocol.ApprovalOnFailure:
					if got := short.Replace(w.exec.Reason); !strings.Contains(got, tt.sandbox) || !w.exec.FromEngine {
						t.Errorf("the question says %q", got)
					}
				}
			}
		})
	}
}

// tree returns everything below a folder, but nothing in the folders skip, with its mode, where links lead, and the
// content of files that are not large.
func tree(t testing.TB, top string, skip ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var text []byte
		switch mode := info.Mode(); {
		case mode&os.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			text = []byte(target)
		case mode.IsRegular() && info.Size() < 1<<20:
			text, err = os.ReadFile(path)
		case mode.IsRegular():
			text = fmt.Append(nil, info.Size())
		}
		all[path] = fmt.Sprintf("%s %s", info.Mode(), text)
		if slices.Contains(skip, path) {
			return filepath.SkipDir
		}
		return err
	})
	must.OK(t, err)
	return all
}

// TestPatchInReplacedFolder checks that a working folder that was replaced between two turns is not patched.
func TestPatchInReplacedFolder(t *testing.T) {
	work, outside := workspace(t)
	h := &host{answer: elicit.Approved}
	box := newBox(tool.Options{Environ: environ})
	context := tool.Context{Cwd: work, ApprovalPolicy: protocol.ApprovalUntrusted, Host: h, SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}}
	box.Turn(context)
	must.OK(t, os.Rename(work, work+".old"), os.Symlink(outside, work))
	res, err := box.Turn(context).Call(t.Context(), shellCall("", "apply_patch", addNew))
	if err != nil || !strings.Contains(res.Output, "was replaced") || h.steps() != "" {
		t.Errorf("%q, %v, steps %s", res.Output, err, h.steps())
	}
}

// TestPatchThroughHardLink patches a file in the working folder that has another name outside. A patch that would
// change the content under both names is treated like one outside of the writable folders, and the question says why.
func TestPatchThroughHardLink(t *testing.T) {
	const (
		asked    = "ask patch, patch begin auto=false, patch end true, diff"
		applied  = "patch begin auto=true, confined, patch end true, diff"
		stopped  = "patch begin auto=true, patch end false, ASK, patch begin auto=false, patch end true, diff"
		rejected = "refused"
	)
	through := map[protocol.ApprovalPolicy]string{"untrusted": asked, "on-failure": stopped, "on-request": asked, "never": rejected}
	beside := map[protocol.ApprovalPolicy]string{"untrusted": asked, "on-failure": applied, "on-request": applied, "never": applied}
	for _, tt := range []struct {
		name, patch string
		want        map[protocol.ApprovalPolicy]string
	}{
		{"update", "Update File: hard" + changeOne, through},
		{"update by a symbolic link", "Update File: soft" + changeOne, through},
		{"overwrite", "Add File: hard\n+two\n*** End Patch", through},
		{"move onto it", "Update File: plain\n*** Move to: hard" + changeOne, through},
		{"move it", "Update File: hard\n*** Move to: new" + changeOne, beside},
		{"delete", "Delete File: hard\n*** End Patch", beside},
		{"another file", "Update File: plain" + changeOne, beside},
	} {
		for policy, want := range tt.want {
			byTool := func(t *testing.T, call tool.Call) {
				top := boxtest.Folder(t)
				work, other := filepath.Join(top, "work"), filepath.Join(top, "other")
				boxtest.Lay(t, top, "other=one\n", "work/plain=one\n", "work/soft -> hard")
				must.OK(t, os.Link(other, filepath.Join(work, "hard")))
				h := &host{answer: elicit.Approved}
				turn := turnOf(tool.Options{Environ: environ, Sandbox: &fakeSandbox{host: h}, FileTools: true}, h, work, policy, "workspace-write")
				res := called(t, turn, call)
				const note = "A write to /hard changes every other name (hard link) of the file too."
				var said []string
				for _, s := range h.about {
					if p, ok := s.(approval.Patch); ok {
						said = append(said, p.Notes...)
					}
				}
				for _, req := range h.asked() {
					said = append(said, req.Reason)
					if !req.FromEngine {
						t.Error("the question presents the reason as the model's")
					}
				}
				wantsNote := tt.want["never"] == rejected && want != rejected
				if got := strings.ReplaceAll(strings.Join(said, " "), work, ""); strings.Contains(got, note) != wantsNote {
					t.Errorf("the question says %q", got)
				}
				steps := h.steps()
				if i := strings.Index(steps, "ask: "); i >= 0 {
					steps = steps[:i] + "ASK" + steps[strings.Index(steps, ", patch begin auto=false"):]
				}
				must.Equal(t, "steps", want, steps)
				text := must.Get(os.ReadFile(other))(t)
				if changed := string(text) != "one\n"; changed != wantsNote {
					t.Errorf("the other name is changed: %t; the model receives %q", changed, res.Output)
				}
				if want == rejected && !strings.Contains(res.Output, "hard link") {
					t.Errorf("the model receives %q", res.Output)
				}
			}
			t.Run(tt.name+"/"+string(policy), func(t *testing.T) { byTool(t, shellCall("", "apply_patch", "*** Begin Patch\n*** "+tt.patch)) })
			if call, ok := fileCall(tt.patch); ok && call.Name == "edit" {
				t.Run(tt.name+"/"+string(policy)+"/edit", func(t *testing.T) { byTool(t, call) })
			}
		}
	}
}

// TestFolderOfApproval replaces a command's folder with a symbolic link: before the question, which then shows its
// target; after an approval for the session, which then does not apply; and while the question is open.
func TestFolderOfApproval(t *testing.T) {
	for _, when := range []string{"never", "before", "during", "after"} {
		base := boxtest.Folder(t)
		work, sub, home := filepath.Join(base, "work"), filepath.Join(base, "work/sub"), filepath.Join(base, "home")
		boxtest.Lay(t, base, "work/sub/", "home/")
		replace := func() {
			must.Check(t, errors.Join(os.RemoveAll(sub), os.Symlink(home, sub)))
		}
		m := &watcher{host: &host{answer: elicit.ApprovedForSession}, during: func() {}}
		turn := turnOf(tool.Options{Environ: environ}, m, work, "untrusted", "workspace-write")
		run := func() string {
			return called(t, turn, shellCall(`,"workdir":"sub"`, "touch", "made")).Output
		}
		wantAsked, made := []string{sub}, filepath.Join(sub, "made")
		switch when {
		case "before":
			replace()
			wantAsked, made = []string{home}, filepath.Join(home, "made")
		case "during":
			m.during, made = replace, ""
		}
		if out := run(); made == "" && !strings.Contains(out, "was replaced") {
			t.Errorf("replaced %s: %s", when, out)
		}
		if when == "after" {
			m.answer, wantAsked = elicit.Denied, append(wantAsked, home)
			replace()
			run()
			made = ""
		}
		var asked []string
		for _, req := range m.asked() {
			asked = append(asked, req.Cwd)
		}
		must.Equal(t, "asked about, replaced "+when, strings.Join(wantAsked, " "), strings.Join(asked, " "))
		if _, err := os.Stat(filepath.Join(home, "made")); (err == nil) != (when == "before") {
			t.Errorf("replaced %s: in the other folder: %v", when, err)
		}
		if _, err := os.Stat(made); made != "" && err != nil {
			t.Errorf("replaced %s: %v", when, err)
		}
	}
}
