package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// programs are what the scenarios run.
type programs struct {
	claude, server string
}

// stage is what a scenario plays on: a home with Claude Code's configuration, an empty
// folder to work in, and two models that answer by script. After the first thing that
// goes wrong nothing else is done; err has it.
type stage struct {
	programs
	ctx context.Context
	err error

	out             string // what is kept
	temp, home, cwd string
	claude          *claude
	codex           *providertest.Server
	env             []string // further variables of Claude Code
	terminal        *terminal
	taken           int // screens
	started         int // terminals
}

func newStage(ctx context.Context, p programs, out string) (*stage, error) {
	temp, err := os.MkdirTemp("", "cc-") // short, for the names of sockets
	if err != nil {
		return nil, err
	}
	s := &stage{
		programs: p, ctx: ctx, out: out,
		temp: temp, home: filepath.Join(temp, "home"), cwd: filepath.Join(temp, "work"),
	}
	for _, dir := range []string{out, s.cwd, filepath.Join(s.home, ".claude"), s.codexHome(), filepath.Join(temp, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, errors.Join(err, os.RemoveAll(temp))
		}
	}
	s.claude, s.codex = newClaude(), providertest.New()
	if err := s.configure(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close ends what runs, keeps what the models received, and reports what went wrong.
func (s *stage) close() error {
	s.quit()
	s.claude.Close()
	s.codex.Close()
	var told strings.Builder
	for i, r := range s.claude.requests() {
		fmt.Fprintf(&told, "--- %d\n", i+1)
		for _, text := range r.texts {
			if len(text) < 4000 { // else Claude Code's own instructions
				fmt.Fprintln(&told, strings.TrimSpace(text))
			}
		}
	}
	return errors.Join(s.err,
		os.WriteFile(filepath.Join(s.out, "model.txt"), []byte(told.String()), 0o600),
		os.RemoveAll(s.temp))
}

// quit ends the terminal, and keeps its last screen.
func (s *stage) quit() {
	if s.terminal == nil {
		return
	}
	if screen, err := s.terminal.screen(context.Background()); err == nil { // it may be gone
		s.err = errors.Join(s.err, s.terminal.keep(screen))
	}
	s.err = errors.Join(s.err, s.terminal.close())
	s.terminal = nil
}

func (s *stage) codexHome() string { return filepath.Join(s.temp, "codex") }
func (s *stage) tracePath() string { return filepath.Join(s.out, "trace.txt") }

// key takes the place of a key of Anthropic's.
const key = "sk-ant-api03-no-key-the-model-is-a-script-on-loopback"

// configure writes what Claude Code and Codex find in their homes, so that no
// question appears but those of the server.
func (s *stage) configure() error {
	config := fmt.Sprintf("model = \"mock-model\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nwire_api = \"chat\"\n", s.codex.BaseURL())
	return errors.Join(
		os.WriteFile(filepath.Join(s.codexHome(), "config.toml"), []byte(config), 0o600),
		writeJSON(filepath.Join(s.home, ".claude.json"), object{
			"numStartups": 10, "theme": "dark", "hasCompletedOnboarding": true, "lastOnboardingVersion": release,
			"customApiKeyResponses": object{"approved": []string{key[len(key)-20:]}, "rejected": []string{}},
			"projects":              object{s.cwd: object{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
			"mcpServers": object{"codex": object{
				"type": "stdio", "command": s.server,
				"args": []string{"-engine", "native", "-trace", s.tracePath()},
				"env":  object{"CODEX_HOME": s.codexHome()},
			}},
		}),
		s.settings(nil))
}

// settings writes Claude Code's settings, with hooks.
func (s *stage) settings(hooks object) error {
	settings := object{"permissions": object{"defaultMode": "default", "disableAutoMode": "disable", "allow": []string{"mcp__codex", "TaskStop"}}}
	if hooks != nil {
		settings["hooks"] = hooks
	}
	return writeJSON(filepath.Join(s.home, ".claude", "settings.json"), settings)
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// environment is Claude Code's: nothing of the caller's but the PATH.
func (s *stage) environment() []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "SHELL=/bin/sh", "TERM=xterm-256color", "LANG=C.UTF-8",
		"TMPDIR=" + filepath.Join(s.temp, "tmp"),
		"ANTHROPIC_API_KEY=" + key, "ANTHROPIC_BASE_URL=" + s.claude.URL,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false",
	}, s.env...)
}

// fail notes what went wrong first.
func (s *stage) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// do runs the next thing, unless something went wrong.
func (s *stage) do(f func() error) {
	if s.err == nil {
		s.err = f()
	}
}

// start starts Claude Code in a terminal and waits for its prompt, and until it
// knows the server's tools.
func (s *stage) start(args ...string) {
	s.do(func() (err error) {
		argv := append([]string{s.programs.claude}, args...)
		s.started++
		s.terminal, err = openTerminal(s.ctx, filepath.Join(s.temp, fmt.Sprint("tmux", s.started)), s.out, &s.taken, s.cwd, s.environment(), argv)
		return err
	})
	s.sees(`(?m)^❯`)
	s.until("list of the server's tools", func() bool {
		raw, err := os.ReadFile(s.tracePath())
		return err == nil && strings.Count(string(raw), `"tools":[`) >= s.started
	})
}

// says types a message for the model.
func (s *stage) says(text string) {
	s.do(func() error { return s.terminal.write(s.ctx, text) })
	s.sees(`(?m)^❯.` + regexp.QuoteMeta(text))
	s.press("Enter")
}

func (s *stage) press(keys ...string) {
	s.do(func() error { return s.terminal.press(s.ctx, keys...) })
}

// sees waits for a screen.
func (s *stage) sees(pattern string) (screen string) {
	s.do(func() (err error) {
		screen, err = s.terminal.await(s.ctx, pattern)
		return err
	})
	return screen
}

// accepts answers a question on the screen.
func (s *stage) accepts(question string) {
	s.sees(question)
	s.leaves(question, "Enter")
}

// declines answers a question on the screen.
func (s *stage) declines(question string) {
	s.sees(question)
	s.reaches(`❯ Decline`, "Right")
	s.leaves(question, "Enter")
}

// reaches presses a key until the screen matches, leaves until it does not. For a moment
// a new question takes no keys, so that it is not answered by accident; so the first is
// pressed after that, and again only when nothing comes of it: it would undo a choice, or
// answer the next question.
func (s *stage) reaches(pattern, key string) { s.pressUntil(pattern, key, true) }
func (s *stage) leaves(pattern, key string)  { s.pressUntil(pattern, key, false) }

func (s *stage) pressUntil(pattern, key string, want bool) {
	re, err := regexp.Compile(pattern)
	s.do(func() error { return err })
	const first, again = 15, 150 // tenths of a second
	for wait := 0; s.err == nil; wait++ {
		if wait%again == first {
			s.press(key)
		}
		s.do(func() error {
			if pause(s.ctx) != nil {
				return fmt.Errorf("after %s, %q on the screen: %t%s", key, pattern, !want, s.shown())
			}
			return nil
		})
		if wait < first || s.err != nil {
			continue
		}
		if screen, err := s.terminal.screen(s.ctx); err == nil && re.MatchString(screen) == want {
			return
		}
	}
}

// shown is the screen for an error, "" without a terminal.
func (s *stage) shown() string {
	if s.terminal == nil {
		return ""
	}
	screen, err := s.terminal.screen(context.Background())
	if err != nil {
		return fmt.Sprintf("; no screen: %v", err)
	}
	return "; the screen:\n" + dense(screen)
}

// hears waits until the model receives something that contains all parts.
func (s *stage) hears(parts ...string) (told string) {
	s.until(fmt.Sprintf("model received %q", parts), func() bool {
		for _, r := range s.claude.requests() {
			if containsAll(r.newest, parts) {
				told = r.newest
				return true
			}
		}
		return false
	})
	return told
}

// until waits for a condition.
func (s *stage) until(what string, holds func() bool) {
	s.do(func() error {
		for !holds() {
			if pause(s.ctx) == nil {
				continue
			}
			return fmt.Errorf("no %s%s", what, s.shown())
		}
		return nil
	})
}

// made checks whether the file is there that a command was to make.
func (s *stage) made(name string, want bool) {
	s.do(func() error {
		_, err := os.Stat(filepath.Join(s.cwd, name))
		if (err == nil) != want {
			return fmt.Errorf("%s was made: %t", name, err == nil)
		}
		return nil
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
