//go:build realcodex

package appserver_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealHostileCaller plays the table of hostile calls with the real Codex, which takes long for each of their commands.
// The native engine's test plays more of it: what a client can do is the same for both.
func TestRealHostileCaller(t *testing.T) {
	boxtest.Need(t)
	t.Setenv("HOME", userHome) // folders outside of the sandbox lie there, and not below one for temporary files
	hostileEngine.TestHostileCalls(t, nightly.Number(36, 1))
}

func TestRealAskedCaller(t *testing.T) {
	boxtest.Need(t)
	t.Setenv("HOME", userHome) // folders outside of the sandbox lie there, and not below one for temporary files
	hostileEngine.TestAskedCalls(t, nightly.Number(2, 1))
}

// hostileEngine is the real Codex for hostile callers.
var hostileEngine = servertest.HostileEngine{Kind: servertest.Codex, Open: openReal, Model: realModel}

func realModel(t testing.TB, next func([]byte) servertest.Step) string {
	p := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		step := next(r.Body)
		call := map[string]any{"cmd": step.Line, "yield_time_ms": 20000}
		switch {
		case step.Fail:
			return providertest.Turn{Status: 400, Body: `{"error":{"message":"no such luck"}}`}
		case step.ID == "":
			return providertest.Say(cmp.Or(step.Say, "done"))
		case step.Patch != "":
			call["cmd"] = "apply_patch <<'EOF'\n" + step.Patch + "EOF\n"
		case step.Outside:
			call["sandbox_permissions"], call["justification"] = "require_escalated", "to write"
		}
		return providertest.Call(providertest.Tool(step.ID, "exec_command", call))
	}})
	t.Cleanup(p.Close)
	return p.BaseURL()
}

func openReal(t *testing.T, y *servertest.Yard) func(time.Duration, setting.FullAccess) servertest.Server {
	t.Helper()
	e := must.Get(appserver.New(&appserver.Options{CodexHome: y.Codex}))(t)
	t.Cleanup(func() { e.Close() })
	return func(limit time.Duration, access setting.FullAccess) servertest.Server {
		return codexserver.New(e, &codexserver.Options{
			Folder: y.Start, Home: y.Codex, Tasks: codexserver.TaskOptions{Mode: "never"}, Approvals: elicit.Options{Timeout: limit},
			Calls: codexserver.CallOptions{FullAccess: access},
		})
	}
}

var moments = flag.Int("moments", nightly.Number(1, 50), "end the server at this `number` of moments, in each way; the step soak has more")

// TestRealNothingOutlivesADeadServer ends codex-mcp while the real Codex starts, and while it runs a command.
func TestRealNothingOutlivesADeadServer(t *testing.T) {
	server := realServer(t)
	servertest.AtAnyMoment(t, *moments, func(t *testing.T) *exec.Cmd { return server(t, true) })
}

// TestRealReaderLeaves closes the reading ends of the output of codex-mcp with the real Codex.
func TestRealReaderLeaves(t *testing.T) {
	servertest.ReaderLeaves(t, *moments, realServer(t))
}

// realServer returns commands that start codex-mcp with the real Codex, whose turns answer unless they are to be busy.
func realServer(t *testing.T) func(t *testing.T, busy bool, args ...string) *exec.Cmd {
	codex := must.Get(appserver.Find(""))(t)
	works := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": servertest.Daemons, "yield_time_ms": 25000}))
	answers := providertest.Say("Done.")
	works.Repeat, answers.Repeat = true, true
	models := map[bool]*providertest.Server{true: providertest.New(works), false: providertest.New(answers)}
	t.Cleanup(models[true].Close)
	t.Cleanup(models[false].Close)
	t.Setenv("HOME", userHome) // the go command has what it compiled there
	bin := build(t)
	return func(t *testing.T, busy bool, args ...string) *exec.Cmd {
		home := openHome(t)
		writeFile(t, filepath.Join(home, "config.toml"), servertest.CodexConfig(models[busy].BaseURL(), ""))
		cmd := exec.Command(bin, append(args, "--engine", "codex", "--codex", codex)...)
		cmd.Env = []string{"CODEX_HOME=" + home}
		return cmd
	}
}

// openHome returns a home of Codex whose server takes calls that ask for full access.
func openHome(t *testing.T) string {
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "codex-mcp.toml"), "[calls]\nfull_access = \"allow\"\n")
	return home
}

// built is codex-mcp.
var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(programs, "codex-mcp")
	return bin, gobuild.Program(bin, "../cmd/codex-mcp")
})

func build(t *testing.T) string {
	t.Helper()
	bin := must.Get(built())(t)
	return bin
}

// managedCodex is a program that runs Codex in a mount namespace of its own, where an administrator
// has requirements, and h.example is this machine.
const managedCodex = `#!/bin/sh
exec unshare --user --map-root-user --mount sh -ec '
mount -t tmpfs none %[1]q
mkdir -p %[1]q/new/codex %[1]q/work
cp %[3]q %[1]q/new/codex/requirements.toml
printf "127.0.0.1 localhost h.example\n" > %[1]q/new/hosts
mount -t overlay overlay -o lowerdir=/etc,upperdir=%[1]q/new,workdir=%[1]q/work /etc
exec %[2]q "$@"' codex "$@"
`

// manage restarts Codex with the requirements of an administrator.
func (r *real) manage(t *testing.T, requirements string) {
	t.Helper()
	codex := must.Get(appserver.Find(""))(t)
	dir := t.TempDir()
	r.options.Path = filepath.Join(dir, "codex")
	writeFile(t, filepath.Join(dir, "requirements.toml"), requirements)
	must.OK(t, testenv.WriteProgram(r.options.Path, fmt.Appendf(nil, managedCodex, t.TempDir(), codex, filepath.Join(dir, "requirements.toml"))))
	r.restart(t)
}

// TestRealNetwork has a command reach a host that no rule allows. Codex asks about the host.
func TestRealNetwork(t *testing.T) {
	t.Parallel()
	needs(t, newQuestions)
	for _, test := range []struct {
		decides elicit.Decision
		reached bool
	}{{elicit.Approved, true}, {elicit.Denied, false}, {elicit.ApprovedForSession, true}, {elicit.Abort, false}}[:nightly.Number(2, 4)] {
		t.Run(string(test.decides), func(t *testing.T) {
			t.Parallel()
			reached := make(chan string, 9)
			site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host }))
			defer site.Close()
			at, err := url.Parse(site.URL)
			must.OK(t, err)
			fetch := func(id string) providertest.Turn {
				return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": "curl -sS http://h.example:" + at.Port(), "yield_time_ms": 20000}))
			}
			r := newReal(t, "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n[features]\nnetwork_proxy = true", fetch("c1"), report, fetch("c2"), report)
			// Without this, Codex decides about hosts by its configuration and does not ask.
			r.manage(t, "[experimental_network]\nenabled = true\nallow_local_binding = true\n")
			var asked []approval.Command
			h := &recorder{exec: func(_ context.Context, q approval.Command) elicit.Outcome {
				asked = append(asked, q)
				return elicit.Outcome{Decision: test.decides}
			}}
			conv := r.start(t, h, protocol.Config{})
			err = conv.Turn(t.Context(), text("go"))
			if len(asked) != 1 || strings.Join(asked[0].Command, " ") != "network-access http h.example" || !asked[0].Once || asked[0].LeavesSandbox {
				t.Errorf("%v; asked %+v, answer %q, events %v", err, asked, h.answer(), h.types())
			}
			if (len(reached) == 1) != test.reached {
				t.Errorf("%v; reached %d times, answer %q", err, len(reached), h.answer())
			}
			if test.decides == elicit.Abort {
				return
			}
			must.Check(t, err)
			asked = nil
			err = conv.Turn(t.Context(), text("again"))
			if err != nil || len(asked) != 1 {
				t.Errorf("the second time: %v, asked %+v, answer %q", err, asked, h.answer())
			}
		})
	}
}

// TestRealStartsNothing has the real Codex work in a repository that names programs for it. None of them
// starts, and the user's config.toml stays as it is. In a repository that the user has trusted in
// Codex, they do start. By day, each is played in one of the two folders.
func TestRealStartsNothing(t *testing.T) {
	t.Parallel()
	const write, full = protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	for n, tt := range []struct {
		name   string
		file   string // of the user's configuration
		cfg    protocol.Config
		starts string // among others; "" is nothing at all
		night  bool   // by day TestSandboxOfTurns alone tells that its threads begin read-only, as those of another row
	}{
		{"nothing", "", protocol.Config{}, "", false},
		{"the folder may be written", "", protocol.Config{Sandbox: write}, "", true},
		{"the folder may be written, and nobody is asked", "", protocol.Config{Sandbox: write, ApprovalPolicy: protocol.ApprovalNever}, "", true},
		{"full access", "", protocol.Config{Sandbox: full, ApprovalPolicy: protocol.ApprovalNever}, "", false},
		{"by a key", "", protocol.Config{Overrides: raw("sandbox_mode", `"workspace-write"`)}, "", true},
		{"as configured", `sandbox_mode = "workspace-write"`, protocol.Config{}, "", true},
		{"full access as configured", `sandbox_mode = "danger-full-access"`, protocol.Config{}, "", true},
		{"by a profile of permissions", `default_permissions = ":workspace"`, protocol.Config{}, "", false},
		{"trusted", "", protocol.Config{Sandbox: write}, "server", false},
	} {
		for m, below := range []string{"", "a/b"} {
			if !nightly.Tests() && (n%2 != m || tt.night) {
				continue
			}
			t.Run(tt.name+"/"+below, func(t *testing.T) {
				t.Parallel()
				marks := filepath.Join(t.TempDir(), "marks")
				r := newReal(t, tt.file)
				more := "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
				if tt.starts != "" {
					more += fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", r.cwd)
				}
				r.configure(t, more)
				file := filepath.Join(r.home, "config.toml")
				whole := must.Get(os.ReadFile(file))(t)
				r.initGit(t)
				program := servertest.Plant(t, r.cwd, marks)
				cfg := tt.cfg
				cfg.Cwd = filepath.Join(r.cwd, below)
				must.OK(t, os.MkdirAll(cfg.Cwd, 0o755))
				check := func(when string) {
					t.Helper()
					if now, err := os.ReadFile(file); err != nil || string(now) != string(whole) {
						t.Errorf("%s, config.toml is another one (%v):\n%s", when, err, now)
					}
					if started, _ := os.ReadFile(marks); tt.starts == "" && len(started) > 0 {
						t.Errorf("%s, there started %q", when, started)
					}
				}
				r.restart(t)
				h := &recorder{} // denies
				turn := func(when string, c engine.Conversation) {
					t.Helper()
					script := []providertest.Turn{providertest.Say("done")}
					if tt.cfg.Sandbox != full && !strings.Contains(tt.file, "danger") && !strings.Contains(tt.file, "permissions") { // else the model may write the marks
						script = append([]providertest.Turn{providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": program + " rule", "yield_time_ms": 20000}))}, script...)
					}
					r.Add(script...)
					must.OK(t, c.Turn(t.Context(), text("go")))
					check(when)
				}
				conv := r.start(t, h, cfg)
				check("at the start")
				turn("after a turn", conv)
				turn("after another turn", conv)
				r.restart(t)
				again := r.resume(t, conv, h, protocol.Config{Keep: func(protocol.Access) bool { return true }})
				check("after a restart")
				turn("after a resumed turn", again)
				r.engine.Close() // what it has started has written by then
				check("at the end")
				if started, _ := os.ReadFile(marks); !strings.Contains(string(started), tt.starts) {
					t.Errorf("there started %q, and not %s", started, tt.starts)
				}
			})
		}
	}
}

// TestRealRules has a command run twice about which rules of Codex want a question, an
// administrator's or those of docs/rules.md in the user's folder. Codex would run it in the sandbox
// without one. Each time is asked, and only a question that says so needs a person.
func TestRealRules(t *testing.T) {
	t.Parallel()
	needs(t, newQuestions)
	const (
		person = "[rules]\nprefix_rules = [{pattern = [{token = \"touch\"}], decision = \"prompt-user\"}]\n"
		anyone = "[rules]\nprefix_rules = [{pattern = [{token = \"touch\"}], decision = \"prompt\"}]\n"
		ours   = "prefix_rule(pattern = [\"touch\"], decision = \"prompt\")\n"
		allows = "prefix_rule(pattern = [\"touch\"], decision = \"allow\")\n"
	)
	const writes, anywhere, auto, never = `sandbox_mode = "workspace-write"`, `sandbox_mode = "danger-full-access"`, "\napprovals_reviewer = \"auto_review\"", "approval_policy = \"never\"\n"
	for n, tt := range []struct {
		name            string
		required, rules string // an administrator's, the user's
		configuration   string
		decides         elicit.Decision
		asked           int
		human, made     bool
	}{
		{"no rule", "", "", writes, elicit.Denied, 0, false, true},
		{"a person approves for the session", person, "", writes, elicit.ApprovedForSession, 2, true, true},
		{"a person approves always", person, "", anywhere, elicit.ApprovedAlways, 2, true, false},
		{"a person declines though a model reviews and the user allows", person, allows, writes + auto, elicit.Denied, 2, true, false},
		{"a person cancels", person, "", writes, elicit.Abort, 1, true, false},
		{"anyone declines", anyone, "", writes, elicit.Denied, 2, false, false},
		{"the user's rule approved", "", ours, writes, elicit.Approved, 2, false, true},
		{"the user's rule declined without a sandbox though another allows", "", allows + ours, anywhere, elicit.Denied, 2, false, false},
		{"the user's rule but nobody is to be asked", "", ours, never + anywhere, elicit.Approved, 0, false, false},
	} {
		if !nightly.Tests() && n%3 != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			touch := func(id string) providertest.Turn {
				return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": "touch made.txt"}))
			}
			r := newReal(t, tt.configuration, touch("c1"), touch("c2"), report)
			if tt.rules != "" {
				must.OK(t, os.Mkdir(filepath.Join(r.home, "rules"), 0o700))
				writeFile(t, filepath.Join(r.home, "rules", "default.rules"), tt.rules)
				r.restart(t)
			}
			if tt.required != "" {
				r.manage(t, tt.required)
			}
			var asked []approval.Command
			h := &recorder{exec: func(_ context.Context, q approval.Command) elicit.Outcome {
				asked = append(asked, q)
				return elicit.Outcome{Decision: tt.decides}
			}}
			err := r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go"))
			if (err != nil) != (tt.decides == elicit.Abort) {
				t.Error(err)
			}
			got := fmt.Sprintf("asked %d, human %t, made %t", len(asked), len(asked) > 0 && asked[0].Human, made(r))
			if want := fmt.Sprintf("asked %d, human %t, made %t", tt.asked, tt.human, tt.made); got != want {
				t.Errorf("%s, want %s: %q, %v", got, want, h.answer(), h.types())
			}
			for _, q := range asked {
				if q.Human != tt.human || !q.Once {
					t.Errorf("asked %+v", q)
				}
			}
		})
	}
}

// TestRealTasks plays the recorded turns of coding tasks, as TestTasks of the native engine does, with a person who
// approves each question. All tasks take half a minute, so without -update only some are played, and one by day.
func TestRealTasks(t *testing.T) {
	shared := servertest.NewTaskFolders(t)
	t.Setenv("HOME", shared.Home)
	t.Setenv("PATH", shared.Bin+":/usr/bin:/bin")
	tasks := servertest.Tasks(t)
	asked := make([]servertest.Asked, len(tasks))
	t.Run("each", func(t *testing.T) {
		for i := range tasks {
			if !*update && (i%8 != 0 || i > 0 && !nightly.Tests()) {
				continue
			}
			t.Run(tasks[i].Name, func(t *testing.T) {
				t.Parallel()
				asked[i] = playTask(t, &tasks[i])
			})
		}
	})
	if !t.Failed() {
		servertest.RecordTasks(t, "codex", asked, *update)
	}
}

func playTask(t *testing.T, task *servertest.Task) (asked servertest.Asked) {
	t.Helper()
	var turns []providertest.Turn
	for i, step := range task.Steps {
		line, outside := strings.CutPrefix(step, "outside: ")
		if strings.HasPrefix(step, "*** Begin Patch") {
			line = "apply_patch <<'EOF'\n" + step + "EOF\n"
		}
		call := map[string]any{"cmd": line}
		if outside {
			call["sandbox_permissions"], call["justification"] = "require_escalated", "the task needs it"
		}
		turns = append(turns, providertest.Call(providertest.Tool(fmt.Sprint("c", i), "exec_command", call)))
	}
	turns = append(turns, providertest.Say("ok"))
	provider := providertest.New(turns...)
	t.Cleanup(provider.Close)
	folders := servertest.NewTaskFolders(t)
	e := must.Get(appserver.New(&appserver.Options{CodexHome: folders.Codex}))(t)
	t.Cleanup(func() { e.Close() })
	task.Make(t, folders, servertest.CodexConfig(provider.BaseURL(), ""))
	approves := func(question string) elicit.Outcome {
		asked.Once = append(asked.Once, folders.Show(question))
		return elicit.Outcome{Decision: elicit.Approved}
	}
	h := &recorder{
		exec: func(_ context.Context, q approval.Command) elicit.Outcome {
			return approves(q.Command[len(q.Command)-1])
		},
		patch: func(_ context.Context, q approval.Patch) elicit.Outcome {
			return approves("patch of " + strings.Join(slices.Sorted(maps.Keys(q.Changes)), ", "))
		},
	}
	conv, err := e.Start(t.Context(), protocol.Config{
		Cwd: folders.Repo, ApprovalPolicy: protocol.ApprovalPolicy(task.Policy), Sandbox: protocol.SandboxMode(task.Sandbox),
	}, h)
	must.OK(t, err)
	must.OK(t, conv.Turn(t.Context(), text("go")))
	must.Equal(t, "requests", len(turns), len(provider.Requests()))
	return asked
}

// TestRealChecks plays the tables of checks and of set-ups with the real Codex.
func TestRealChecks(t *testing.T) {
	e := servertest.CheckEngine{Model: realModel, Open: func(t *testing.T, home, folder string, calls setting.Calls) servertest.Server {
		e := must.Get(appserver.New(&appserver.Options{CodexHome: home}))(t)
		t.Cleanup(func() { e.Close() })
		return codexserver.New(e, &codexserver.Options{Home: home, Folder: folder, Calls: calls})
	}}
	// By day without those that the sandbox must stop outside of memory, whose file system Codex hides.
	e.TestChecks(t, func(n int) bool { return n%nightly.Number(7, 1) == 0 })
	t.Run("set-ups", func(t *testing.T) {
		e.TestSetups(t, func(n int) bool { return n%nightly.Number(7, 1) == 0 })
	})
}

// TestRealForms plays the table of forms with the real Codex, by day three rows.
func TestRealForms(t *testing.T) {
	e := servertest.FormEngine{Model: realModel, Open: func(t *testing.T, home, folder string, calls setting.Calls) servertest.Server {
		e := must.Get(appserver.New(&appserver.Options{CodexHome: home}))(t)
		t.Cleanup(func() { e.Close() })
		return codexserver.New(e, &codexserver.Options{Home: home, Folder: folder, Calls: calls})
	}}
	e.TestForms(t, func(n int) bool { return n%nightly.Number(6, 1) == 0 })
}
