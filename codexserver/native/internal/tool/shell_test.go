//go:build unix

package tool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

func TestShell(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	seconds := int64(60_000)
	sub := "sub"
	for _, tt := range []struct {
		name, want string
		call       tool.Call
	}{
		{"output", `{"output":"hi\n","metadata":{"exit_code":0,`, shellCall(t, "", "echo", "hi")},
		{"exit code", `{"output":"","metadata":{"exit_code":3,`, shellCall(t, "", "sh", "-c", "exit 3")},
		{"working folder", `{"output":"` + dir + `/sub\n",`, shellCall(t, `,"workdir":"sub"`, "pwd")},
		{"other name", `{"output":"hi\n",`, tool.Call{Name: "container.exec", Arguments: `{"command":["echo","hi"]}`}},
		{"the model's own shell", `{"output":"` + dir + `/sub\n",`, tool.Call{Shell: &protocol.LocalShellAction{
			Command: []string{"pwd"}, WorkingDirectory: &sub, TimeoutMS: &seconds,
		}}},
		{"timeout", `{"output":"command timed out after `, shellCall(t, `,"timeout_ms":50`, "sleep", "60")},
		{"no such program", "execution error: ", shellCall(t, "", "no-such-program")},
		{"no such folder", "execution error: ", shellCall(t, `,"workdir":"nope"`, "pwd")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			turn, h := begin(t, dir)
			res, err := turn.Call(t.Context(), tt.call)
			if err != nil || !strings.HasPrefix(res.Output, tt.want) {
				t.Errorf("%q, %v", res.Output, err)
			}
			end, ok := h.all[len(h.all)-1].(protocol.ExecCommandEnd)
			if !ok {
				t.Fatalf("the last event is %T", h.all[len(h.all)-1])
			}
			if strings.HasPrefix(tt.want, "execution") && (end.ExitCode != -1 || end.Stderr != "No such file or directory (os error 2)") {
				t.Errorf("end %+v", end)
			}
		})
	}
}

func TestShellInterrupted(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	turn, h := begin(t, t.TempDir())
	turn.Acting = func() { h.add(nil, "acting") }
	turn.Host = canceller{h, func() { cancel(cause) }}
	_, err := turn.Call(ctx, shellCall(t, "", "sh", "-c", "echo x; sleep 60"))
	if !errors.Is(err, cause) || h.steps() != "acting, begin" {
		t.Errorf("%v after %s", err, h.steps())
	}
	if _, err := turn.Call(ctx, shellCall(t, "", "true")); !errors.Is(err, cause) {
		t.Errorf("afterwards: %v", err)
	}
}

// canceller cancels the context at the first output.
type canceller struct {
	*host
	cancel func()
}

func (c canceller) Emit(m protocol.EventMsg) {
	if _, ok := m.(protocol.ExecCommandOutputDelta); ok {
		c.cancel()
	}
	c.host.Emit(m)
}

func TestShellWithProfile(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte("export FROM_PROFILE=yes\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	h := &host{}
	box := newBox(t, tool.Options{Environ: append(environ, "HOME="+home), Shell: "/bin/sh"})
	turn := box.Turn(tool.Context{Cwd: home, ApprovalPolicy: "never", Host: h, SandboxPolicy: protocol.SandboxPolicy{Mode: "danger-full-access"}})
	res, err := turn.Call(t.Context(), shellCall(t, "", "sh", "-c", `echo $FROM_PROFILE "$1"`, "sh", "a 'b' $c"))
	if want := `{"output":"yes a 'b' $c\n",`; err != nil || !strings.HasPrefix(res.Output, want) {
		t.Errorf("%s, %v", res.Output, err)
	}
	if begin, ok := h.all[0].(protocol.ExecCommandBegin); !ok || begin.Command[0] != "sh" {
		t.Errorf("the user is shown %+v", h.all[0])
	}
}

// TestReplaceableProgram approves commands for the session. No rule may allow those with
// programs that the model can replace, and the question names the program.
func TestReplaceableProgram(t *testing.T) {
	dir := t.TempDir()
	system := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "run.sh"), filepath.Join(dir, "venv/bin/tool")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The second folder is also in /tmp, where commands may write.
	if err := os.Symlink("/bin/echo", filepath.Join(system, "linked")); err != nil {
		t.Fatal(err)
	}
	const once, session = "ask, begin, end 0, ask, begin, end 0", "ask, begin, end 0, begin, end 0"
	for _, mode := range protocol.SandboxModes() {
		for _, tt := range []struct {
			argv        []string
			program     string
			replaceable bool
			want        string
		}{
			{[]string{"sh", "-c", "exit 0"}, "", true, session}, // there is no program exit
			{[]string{"sh", "-c", "true"}, "", false, session},
			{[]string{"/bin/sh", "-c", "true 2>&1"}, "", true, session},
			{[]string{"/bin/sh", "-c", "(true)"}, "", true, once},
			{[]string{"./run.sh"}, filepath.Join(dir, "run.sh"), true, session},
			{[]string{"tool"}, filepath.Join(dir, "venv/bin/tool"), true, session},
			{[]string{"sh", "-c", "true; ./run.sh"}, filepath.Join(dir, "run.sh"), true, once},
			{[]string{"sh", "-c", "true && uname"}, "", false, once},
			{[]string{"sh", "-c", "true; tool"}, filepath.Join(dir, "venv/bin/tool"), true, once},
			{[]string{"sh", "./run.sh"}, "", true, session},
			{[]string{"sh", "-c", "$NONE exit 0"}, "", true, once},
			{[]string{filepath.Join(system, "linked")}, filepath.Join(system, "linked"), true, session},
		} {
			h := &host{answer: elicit.ApprovedForSession}
			box := newBox(t, tool.Options{Environ: []string{"PATH=" + dir + "/venv/bin:/usr/bin:/bin"}})
			turn := box.Turn(tool.Context{Cwd: dir, ApprovalPolicy: "untrusted", SandboxPolicy: protocol.SandboxPolicy{Mode: mode}, Host: h})
			for range 2 {
				if _, err := turn.Call(t.Context(), shellCall(t, "", tt.argv...)); err != nil {
					t.Fatal(err)
				}
			}
			if h.steps() != tt.want {
				t.Errorf("%s %q: %s, want %s", mode, tt.argv, h.steps(), tt.want)
			}
			for _, m := range h.all {
				if req, ok := m.(protocol.ExecApprovalRequest); ok && (req.Once != (tt.want == once) || req.Replaceable != tt.replaceable || req.Program != tt.program) {
					t.Errorf("%s %q: asked about %q, replaceable %t, once %t", mode, tt.argv, req.Program, req.Replaceable, req.Once)
				}
			}
		}
	}
}

// TestOtherConversations checks that folders which other conversations can write count.
func TestOtherConversations(t *testing.T) {
	h := &host{answer: elicit.Approved}
	box := newBox(t, tool.Options{Environ: environ, Writable: func() []string { return []string{"/bin", "/usr/bin"} }})
	turn := box.Turn(tool.Context{Cwd: t.TempDir(), ApprovalPolicy: "untrusted", SandboxPolicy: protocol.SandboxPolicy{Mode: "read-only"}, Host: h})
	if _, err := turn.Call(t.Context(), shellCall(t, "", "uname")); err != nil {
		t.Fatal(err)
	}
	if req, ok := h.all[0].(protocol.ExecApprovalRequest); !ok || !req.Replaceable || filepath.Base(req.Program) != "uname" {
		t.Errorf("asked %+v", h.all[0])
	}
}

// TestSessionInOtherSandbox checks that an approval for the session does not cover the command
// in another folder or under another sandbox policy.
func TestSessionInOtherSandbox(t *testing.T) {
	box := newBox(t, tool.Options{Environ: environ})
	dir := t.TempDir()
	for _, tt := range []struct {
		policy  protocol.SandboxPolicy
		members string
		want    string
	}{
		{protocol.SandboxPolicy{Mode: "danger-full-access"}, "", "ask, begin, end 0"},
		{protocol.SandboxPolicy{Mode: "danger-full-access"}, "", "begin, end 0"},
		{protocol.SandboxPolicy{Mode: "workspace-write"}, "", "ask, begin, end 0"},
		{protocol.SandboxPolicy{Mode: "workspace-write", NetworkAccess: true}, "", "ask, begin, end 0"},
		{protocol.SandboxPolicy{Mode: "workspace-write", WritableRoots: []string{"/srv"}}, "", "ask, begin, end 0"},
		{protocol.SandboxPolicy{Mode: "workspace-write"}, "", "begin, end 0"},
		{protocol.SandboxPolicy{Mode: "workspace-write"}, `,"workdir":"/"`, "ask, begin, end 0"},
	} {
		h := &host{answer: elicit.ApprovedForSession}
		turn := box.Turn(tool.Context{Cwd: dir, ApprovalPolicy: "untrusted", SandboxPolicy: tt.policy, Host: h})
		if _, err := turn.Call(t.Context(), shellCall(t, tt.members, "uname", "-s")); err != nil {
			t.Fatal(err)
		}
		if h.steps() != tt.want {
			t.Errorf("%+v %s: %s, want %s", tt.policy, tt.members, h.steps(), tt.want)
		}
	}
}

// TestOwnChange approves a command for the session that changes the file that it names. The
// approval holds, but not if another command may have changed the file meanwhile.
func TestOwnChange(t *testing.T) {
	touch := shellCall(t, "", "touch", "made")
	for _, tt := range []struct {
		name   string
		during func(dir string, a *tool.Activity) error
		after  func(dir string, a *tool.Activity) error
		want   string
	}{
		{"alone", nil, nil, "ask, begin, end 0, begin, end 0"},
		{"with another", func(_ string, a *tool.Activity) error { a.Begin(); return nil }, nil, "ask, begin, end 0, ask, begin, end 0"},
		{"with another that has ended", func(_ string, a *tool.Activity) error { a.Begin()(); return nil }, nil, "ask, begin, end 0, ask, begin, end 0"},
		{"changed afterwards", nil, func(dir string, _ *tool.Activity) error {
			return os.WriteFile(filepath.Join(dir, "made"), []byte("x"), 0o600)
		}, "ask, begin, end 0, ask, begin, end 0"},
		{"another afterwards", nil, func(_ string, a *tool.Activity) error { a.Begin()(); return nil }, "ask, begin, end 0, begin, end 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, activity := t.TempDir(), &tool.Activity{}
			h := &host{answer: elicit.ApprovedForSession}
			turn := newBox(t, tool.Options{Environ: environ, Activity: activity}).Turn(tool.Context{
				Cwd: dir, ApprovalPolicy: "untrusted", SandboxPolicy: protocol.SandboxPolicy{Mode: "workspace-write"}, Host: h,
			})
			turn.Acting = func() {
				if tt.during != nil {
					if err := tt.during(dir, activity); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := turn.Call(t.Context(), touch); err != nil {
				t.Fatal(err)
			}
			if tt.after != nil {
				if err := tt.after(dir, activity); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := turn.Call(t.Context(), touch); err != nil {
				t.Fatal(err)
			}
			if h.steps() != tt.want {
				t.Errorf("%s, want %s", h.steps(), tt.want)
			}
		})
	}
}

// TestApprovedThenReplaced approves a system program for the session, and then puts
// another program of that name before it in PATH.
func TestApprovedThenReplaced(t *testing.T) {
	dir := t.TempDir()
	h := &host{answer: elicit.ApprovedForSession}
	box := newBox(t, tool.Options{Environ: []string{"PATH=" + dir + "/bin:/usr/bin:/bin"}})
	turn := box.Turn(tool.Context{Cwd: dir, ApprovalPolicy: "untrusted", SandboxPolicy: protocol.SandboxPolicy{Mode: "workspace-write"}, Host: h})
	call := shellCall(t, "", "uname")
	for range 2 {
		if _, err := turn.Call(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin/uname"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.answer = elicit.Denied
	if _, err := turn.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if want := "ask, begin, end 0, begin, end 0, ask"; h.steps() != want {
		t.Errorf("%s, want %s", h.steps(), want)
	}
}

// TestStoppedReadOnly checks that the model learns why a command that is known to be safe
// was stopped, and that the user is not asked to run it outside of the sandbox.
func TestStoppedReadOnly(t *testing.T) {
	h := &host{answer: elicit.Approved}
	box := newBox(t, tool.Options{Environ: environ, Sandbox: &fakeSandbox{host: h, stops: 1}})
	turn := box.Turn(tool.Context{Cwd: "/", ApprovalPolicy: "untrusted", SandboxPolicy: protocol.SandboxPolicy{Mode: "danger-full-access"}, Host: h})
	res, err := turn.Call(t.Context(), shellCall(t, "", "false"))
	if err != nil || h.steps() != "begin, confined to read-only, end 1" || !strings.Contains(res.Output, "read-only sandbox without network, which stopped it") {
		t.Errorf("%s: %s, %v", h.steps(), res.Output, err)
	}
}
