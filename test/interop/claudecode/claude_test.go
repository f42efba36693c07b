//go:build claudecode

// Package claudecode plays scripts with Claude Code and codex-mcp: it drives Claude Code in a
// terminal (tmux), as claude -p and by its Agent SDK, and looks at the screen, at the messages between the two,
// at what the commands made and at what the model received. Both models are scripts on
// loopback; no account and no key are needed, and the caller's home is not touched.
//
//	npm install --prefix /tmp/claude @anthropic-ai/claude-code@2.1.330
//	cd test/interop
//	go test -tags claudecode -parallel 1 ./claudecode -claude /tmp/claude/node_modules/.bin
//	go test -tags claudecode -parallel 1 ./claudecode -claude ... -terminal -run /task -keep
//
// With -update what the scripts compare screens with is rewritten: look at it. With -keep the folder of each script remains, with its
// screens, the trace of codex-mcp and what the model received. It needs Linux or macOS, for the scripts page_ and both_ Chromium,
// and tmux for both_ and with -terminal, which adds the scripts of testdata/terminal. The gate does not run it; the step hosts installs the
// versions of package.json, with the Agent SDK.
package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/test/interop/internal/wire"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

var (
	folder = flag.String("claude", "", "the `folder` of the program claude")
	update = flag.Bool("update", false, "rewrite what the scripts compare screens with")
	keep   = flag.Bool("keep", false, "keep the folders of the scripts")
	inTmux = flag.Bool("terminal", false, "play the scripts that need a terminal, too")
)

// limit bounds each script.
const limit = 5 * time.Minute

// key takes the place of a key of Anthropic's.
const key = "sk-ant-api03-no-key-the-model-is-a-script-on-loopback"

// TestScripts runs the scripts. Each begins in an empty folder. Their commands are
// those of testscript, and those below. The file "hook" of a script answers questions, "flags" has arguments of codex-mcp, "shared" has
// it outlive Claude Code, and with "npm.js", in place of the npm package, the plugin of this checkout starts it.
//
//	model HEARD say TEXT                a line of Claude Code's model: what it answers to a
//	model HEARD codex ARGUMENTS...      message that contains HEARD, once; it calls the tool codex
//	model HEARD codex-wait              with JSON arguments, codex-wait for the thread that it
//	model HEARD TaskStop                heard of, or TaskStop for the first background task
//	codex [-match TEXT] [-hold] TURN    a turn of Codex's model: "run ARGV...", where @FILE is a
//	                                    file's content, "say TEXT", "echo" (the end of the command),
//	                                    or "fail"; it answers TEXT only, and after "release"
//	claude [ARGUMENT...]                start Claude Code in a terminal, and wait for its prompt
//	says TEXT, press KEY...             type
//	size COLUMNS LINES                  those of the next terminals, 120 and 50 by default
//	sees PATTERN, unseen PATTERN        wait for a screen, or until none is left
//	shows FILE PATTERN                  wait for a question, and write what is seen of it to FILE
//	leaves PATTERN KEY                  press a key until the screen does not match
//	accepts PATTERN, declines PATTERN   answer a question on the screen
//	decides [-picture] COMMAND BUTTON   answer a question on the approvals page, in Chromium
//	watches COMMAND, told TEXT          wait until the page has a question, and until it says how it ended
//	closes                              close the page
//	hears PART...                       wait until the model receives what contains all parts
//	unheard PART...                     check that this has none of the parts
//	knows FILE PART...                  the same, and compare the result in it with FILE
//	runs, ends                          wait for the process that wrote its id to the file "pid",
//	                                    and for its end
//	quit, kill                          close the terminal, or kill Claude Code and its children
//	wire ERA [KIND=NUMBER...]           check the messages: how many are "questions" (requests),
//	                                    "rounds", "tasks", answers with an action, or of a method
func TestScripts(t *testing.T) {
	if *folder == "" {
		t.Fatal("-claude: want the folder of the program claude")
	}
	bin, err := filepath.Abs(*folder)
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command(filepath.Join(bin, "claude"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", version)
	number, _, _ := strings.Cut(string(version), " ")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(t.TempDir(), "codex-mcp")
	build := exec.Command("go", "build", "-o", server, "./codexserver/cmd/codex-mcp")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dirs := []string{"testdata"}
	if *inTmux {
		dirs = append(dirs, filepath.Join("testdata", "terminal"))
	}
	files := []string{}
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s has no scripts: %v", dir, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files: files, TestWork: *keep, UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Vars = []string{"SDK=" + filepath.Join(here, "sdk.mjs"), "REPOSITORY=" + filepath.Join(here, "..", "..", "..")}
			return setup(e, bin, number, server)
		},
		Cmds: commands,
	})
}

// stage is what a script plays on: two models that answer by script, and a terminal.
type stage struct {
	ctx      context.Context
	work     string
	claude   *claude
	codex    *providertest.Server
	tools    string        // what Claude Code puts before the names of the server's tools
	release  chan struct{} // closed by "release"
	terminal *terminal
	size     []string // of terminals: columns and lines
	started  int      // terminals
	opened   string   // the last link to the page
	page     *visit   // the open page, nil if there is none
	heard    string   // what the last "hears" found
	pid      int      // of "runs"
}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value("stage").(*stage) }

// setup writes what Claude Code and Codex find in their homes, so that no question appears but
// those of the server.
func setup(e *testscript.Env, bin, version, server string) error {
	in := func(path ...string) string { return filepath.Join(append([]string{e.WorkDir}, path...)...) }
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errors.New("the time is over"))
	s := &stage{ctx: ctx, work: e.WorkDir, claude: newClaude(), codex: providertest.New(), tools: "mcp__codex__", release: make(chan struct{}), size: []string{"120", "50"}}
	e.Values["stage"] = s
	e.Defer(func() {
		s.quit()
		s.leave()
		cancel()
		s.claude.Close()
		s.codex.Close()
		os.WriteFile(in("model.txt"), []byte(s.claude.received()), 0o600)
	})
	e.Cd = in("home", "app")
	e.Vars = append(e.Vars, "SERVER="+server,
		"WORK="+e.WorkDir, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+in("home"), "SHELL=/bin/sh", "TERM=xterm-256color", "LANG=C.UTF-8",
		"TMPDIR="+in("tmp"), "ANTHROPIC_API_KEY="+key, "ANTHROPIC_BASE_URL="+s.claude.URL,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false",
	)
	for _, dir := range []string{"home/app", "tmp", "screens", "codex", "home/.claude"} {
		if err := os.MkdirAll(in(dir), 0o700); err != nil {
			return err
		}
	}
	servers := object{}
	if npm, err := os.ReadFile(in("npm.js")); err == nil { // the plugin starts the server, by this in place of the npm package
		s.tools = "mcp__plugin_codex-mcp_codex__"
		if err := keepPackage(in("home", ".claude", "plugins", "data", "codex-mcp-codexmcp"), npm); err != nil {
			return err
		}
	}
	settings := object{"permissions": object{"defaultMode": "default", "allow": []string{strings.TrimSuffix(s.tools, "__"), "TaskStop"}}}
	if _, err := os.Stat(in("hook")); err == nil { // a program of the user's that is text of each question
		settings["hooks"] = object{"Elicitation": []object{{"hooks": []object{{"type": "command", "command": "sh " + in("hook")}}}}}
	}
	args, variables := []string{"--engine", "native", "--trace", in("trace.txt")}, object{"CODEX_HOME": in("codex")}
	if flags, err := os.ReadFile(in("flags")); err == nil {
		args = append(args, strings.Fields(string(flags))...)
	}
	if _, err := os.Stat(in("shared")); err == nil { // the server outlives Claude Code
		args = append(args, "--shared")
		e.Defer(func() {
			stop := exec.Command(server, "shared", "stop")
			stop.Env = append(os.Environ(), "CODEX_HOME="+in("codex"))
			_ = stop.Run() // the script has passed or failed
		})
	}
	if s.tools == "mcp__codex__" {
		servers["codex"] = object{"type": "stdio", "command": server, "args": args, "env": variables}
	}
	config := fmt.Sprintf("model = \"mock-model\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nwire_api = \"chat\"\n", s.codex.BaseURL())
	return errors.Join(
		os.WriteFile(in("codex", "config.toml"), []byte(config), 0o600),
		writeJSON(in("home", ".claude", "settings.json"), settings),
		writeJSON(in("home", ".claude.json"), object{
			"numStartups": 10, "theme": "dark", "hasCompletedOnboarding": true, "lastOnboardingVersion": version,
			"hasSeenAutoDefaultNudge": true, "hasSeenAutoDefaultNotice": true, // it offers auto mode over the prompt
			"customApiKeyResponses": object{"approved": []string{key[len(key)-20:]}, "rejected": []string{}},
			"projects":              object{e.Cd: object{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
			"mcpServers":            servers,
		}))
}

// keepPackage writes what starts the server to where the plugin of the checkout keeps its npm package.
func keepPackage(data string, launcher []byte) error {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "packaging", "plugin", ".claude-plugin", "plugin.json"))
	var plugin struct{ Version string }
	if err == nil {
		err = json.Unmarshal(text, &plugin)
	}
	folder := filepath.Join(data, "npm-"+plugin.Version, "node_modules", "@codexmcp", "codex-mcp")
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "codex-mcp.js"), launcher, 0o600)
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"model":   func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).model(ts, args) },
	"codex":   func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).turn(ts, args) },
	"release": func(ts *testscript.TestScript, _ bool, _ []string) { close(stageOf(ts).release) },
	"claude":  func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).start(ts, args) },
	"size":    func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).size = args },
	"sees":    func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).sees(ts, args[0]) },
	"unseen": func(ts *testscript.TestScript, _ bool, args []string) {
		s, re := stageOf(ts), regexp.MustCompile(args[0])
		s.until(ts, "screen without "+args[0], func() bool {
			screen, err := s.terminal.screen()
			return err == nil && !re.MatchString(screen)
		})
	},
	"shows": func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).shows(ts, args[0], args[1]) },
	"press": func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(stageOf(ts).terminal.press(args...)) },
	"leaves": func(ts *testscript.TestScript, _ bool, args []string) {
		stageOf(ts).pressUntil(ts, args[0], args[1], false)
	},
	"quit":    func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(stageOf(ts).quit()) },
	"kill":    func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(stageOf(ts).terminal.kill()) },
	"watches": func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).watches(ts, args[0]) },
	"told":    func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).told(ts, args[0]) },
	"closes":  func(ts *testscript.TestScript, _ bool, _ []string) { stageOf(ts).leave() },
	"decides": func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).decides(ts, args) },
	"hears":   func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).hears(ts, args) },
	"knows":   func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).knows(ts, args[0], args[1:]) },
	"wire":    func(ts *testscript.TestScript, _ bool, args []string) { stageOf(ts).wire(ts, args[0], args[1:]) },
	"says": func(ts *testscript.TestScript, _ bool, args []string) {
		s := stageOf(ts)
		ts.Check(s.terminal.press("-l", "--", args[0]))
		s.sees(ts, `(?m)^❯.`+regexp.QuoteMeta(args[0]))
		ts.Check(s.terminal.press("Enter"))
	},
	"accepts": func(ts *testscript.TestScript, _ bool, args []string) {
		s := stageOf(ts)
		s.pressUntil(ts, regexp.QuoteMeta(s.sees(ts, args[0])), "Enter", false)
	},
	"declines": func(ts *testscript.TestScript, _ bool, args []string) {
		s := stageOf(ts)
		s.sees(ts, args[0])
		s.pressUntil(ts, `❯ Decline`, "Right", true)
		s.pressUntil(ts, args[0], "Enter", false)
	},
	"unheard": func(ts *testscript.TestScript, _ bool, args []string) {
		for _, part := range args {
			if heard := stageOf(ts).heard; strings.Contains(heard, part) {
				ts.Fatalf("the model received %s:\n%s", part, heard)
			}
		}
	},
	"runs": func(ts *testscript.TestScript, _ bool, _ []string) {
		s := stageOf(ts)
		s.until(ts, "process of the command", func() bool {
			text, err := os.ReadFile(ts.MkAbs("pid"))
			if err == nil {
				s.pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err == nil
		})
	},
	"ends": func(ts *testscript.TestScript, _ bool, _ []string) {
		s := stageOf(ts)
		s.until(ts, "end of the command", func() bool { return errors.Is(syscall.Kill(s.pid, 0), syscall.ESRCH) })
	},
}

// model adds a line to the script of Claude Code's model.
func (s *stage) model(ts *testscript.TestScript, args []string) {
	var calls []use
	heard, what, rest := args[0], args[1], args[2:]
	dynamic := func(r request) []use { return calls }
	switch what {
	case "say":
		s.claude.script(heard, func(request) answer { return answer{says: rest[0]} })
		return
	case "codex":
		for _, arguments := range rest {
			input := object{"cwd": ts.MkAbs("."), "approval-policy": "untrusted", "sandbox": "workspace-write"}
			ts.Check(json.Unmarshal([]byte(arguments), &input))
			calls = append(calls, use{s.tools + "codex", input})
		}
	case "codex-wait":
		dynamic = func(r request) []use {
			return []use{{s.tools + "codex-wait", object{"threadIds": []string{first(`"threadId":"([^"]+)"`, r.newest)}}}}
		}
	case "TaskStop":
		dynamic = func(r request) []use {
			return []use{{"TaskStop", object{"task_id": first(`background as task ([a-z0-9]+)`, string(r.body))}}}
		}
	default:
		ts.Fatalf("model: unknown answer %q", what)
	}
	s.claude.script(heard, func(r request) answer { return answer{calls: dynamic(r)} })
}

// turn adds a turn to the script of Codex's model.
func (s *stage) turn(ts *testscript.TestScript, args []string) {
	var t providertest.Turn
	match, held := "", false
	for strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-match":
			match, args = args[1], args[1:]
		case "-hold":
			held = true
		}
		args = args[1:]
	}
	switch args[0] {
	case "run":
		argv := args[1:]
		for i, word := range argv {
			if file, ok := strings.CutPrefix(word, "@"); ok {
				argv[i] = ts.ReadFile(file)
			}
		}
		t = providertest.Call(providertest.Tool("call_"+strings.Join(argv[:min(2, len(argv))], "_"), "shell", object{"command": argv, "timeout_ms": 600_000}))
	case "say":
		t = providertest.Say(args[1])
	case "echo":
		t.Func = func(r providertest.Request) providertest.Turn {
			return providertest.Say("Codex ends: " + r.LastToolOutput())
		}
	case "fail":
		t = providertest.Turn{Status: http.StatusBadRequest, Body: `{"error":{"message":"the model is gone"}}`}
	default:
		ts.Fatalf("codex: unknown turn %q", args[0])
	}
	if t.Match = match; held {
		t.Wait = s.release
	}
	s.codex.Add(t)
}

// start starts Claude Code in a terminal and waits for its prompt, and until it knows the
// server's tools.
func (s *stage) start(ts *testscript.TestScript, args []string) {
	s.started++
	s.terminal = &terminal{socket: filepath.Join(s.work, fmt.Sprint("tmux", s.started)), screens: filepath.Join(s.work, "screens")}
	// By the script, for its environment.
	ts.Check(ts.Exec("tmux", append([]string{"-S", s.terminal.socket, "-f", "/dev/null", "new-session", "-d", "-x", s.size[0], "-y", s.size[1], "--", "claude"}, args...)...))
	ts.Check(s.terminal.opened())
	s.sees(ts, `(?m)^❯`)
	s.until(ts, "list of the server's tools", func() bool {
		raw, err := os.ReadFile(filepath.Join(s.work, "trace.txt"))
		return err == nil && strings.Count(string(raw), `"tools":[`) >= s.started
	})
}

// quit ends the terminal, and waits for the end of the program in it.
func (s *stage) quit() error {
	if s.terminal == nil {
		return nil
	}
	t := s.terminal
	s.terminal = nil
	return t.close()
}

// sees waits for a screen, and returns what matched.
func (s *stage) sees(ts *testscript.TestScript, pattern string) (found string) {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	s.until(ts, fmt.Sprintf("%q on the screen", pattern), func() bool {
		screen, err := s.terminal.screen()
		if err != nil {
			ts.Fatalf("waiting for %q on the screen: the program has ended: %v", pattern, err)
		}
		found = re.FindString(screen)
		return found != ""
	})
	ts.Check(s.terminal.keep())
	return found
}

// shows waits for a question on the screen that matches, and writes what is seen of it to a file.
func (s *stage) shows(ts *testscript.TestScript, file, pattern string) {
	s.sees(ts, pattern)
	shown := s.sees(ts, `(?s)[^\n]*requests your input.*Esc to (cancel|answer|collapse)[^\n]*`)
	var lines []string
	for line := range strings.Lines(shown) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	ts.Check(os.WriteFile(ts.MkAbs(file), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// pressUntil presses a key until the screen matches, or does not. For a moment a new question
// takes no keys, so that it is not answered by accident; so the first is pressed after that,
// and again only when nothing comes of it: it would undo a choice, or answer the next question.
func (s *stage) pressUntil(ts *testscript.TestScript, pattern, key string, want bool) {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	const first, again = 15, 150 // tenths of a second
	wait := 0
	s.until(ts, fmt.Sprintf("screen with %q: %t, after %s", pattern, want, key), func() bool {
		wait++
		if wait%again == first {
			ts.Check(s.terminal.press(key))
		}
		screen, err := s.terminal.screen()
		return wait > first && err == nil && re.MatchString(screen) == want
	})
}

// hears waits until the model receives something that contains all parts.
func (s *stage) hears(ts *testscript.TestScript, parts []string) {
	s.until(ts, fmt.Sprintf("model received %q", parts), func() bool {
		for _, r := range s.claude.requests() {
			if containsAll(r.newest, parts) {
				s.heard = r.newest
				return true
			}
		}
		return false
	})
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// until waits for a condition.
func (s *stage) until(ts *testscript.TestScript, what string, holds func() bool) {
	for !holds() {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.ctx.Done():
			screen := ""
			if s.terminal != nil {
				screen, _ = s.terminal.screen()
			}
			ts.Fatalf("no %s; the screen:\n%s", what, screen)
		}
	}
}

// outcome is the part of a turn's structured content that the scripts check: what the turn did.
// The model must see it, also in an error: else it has only what the turn says of itself.
type outcome struct {
	Status  string
	Usage   struct{ Turn struct{ Input, Output int } }
	Changes []struct {
		Path, Kind     string
		Added, Removed int
	}
	Commands []struct {
		Command  string
		ExitCode int
	}
	Refused []struct{ Kind, What, Why, By, Reason string }
}

// knows compares the result that the model received. No usage in the file stands for any.
func (s *stage) knows(ts *testscript.TestScript, file string, parts []string) {
	s.hears(ts, parts)
	_, members, found := strings.Cut(s.heard, `{"threadId":`)
	if !found {
		ts.Fatalf("the model received no structured content: %s", s.heard)
	}
	var got, want, none outcome
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &want))
	ts.Check(json.NewDecoder(strings.NewReader(`{"threadId":` + members)).Decode(&got))
	if want.Usage == none.Usage {
		if got.Usage == none.Usage {
			ts.Fatalf("the model received no usage: %s", s.heard)
		}
		got.Usage = none.Usage
	}
	if d := cmp.Diff(want, got); d != "" {
		ts.Fatalf("the model's result (-want +got)\n%s\nin %s", d, s.heard)
	}
}

// wire checks the trace.
func (s *stage) wire(ts *testscript.TestScript, era string, counts []string) {
	raw, err := os.ReadFile(filepath.Join(s.work, "trace.txt"))
	ts.Check(err)
	messages, err := wire.Read(string(raw))
	ts.Check(err)
	switch era {
	case "modern":
		ts.Check(modern(messages))
	case "legacy":
		ts.Check(legacy(messages))
	default:
		ts.Fatalf("wire: unknown era %q", era)
	}
	for _, c := range counts {
		kind, number, _ := strings.Cut(c, "=")
		if got := strconv.Itoa(count(messages, kind)); got != number {
			ts.Fatalf("%s messages are %s, want %s", got, kind, number)
		}
	}
}
