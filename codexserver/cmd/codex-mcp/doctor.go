package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// diagnosis is the report of codex-mcp doctor.
type diagnosis struct {
	Version string `json:"version"`
	System  string `json:"system"`
	Home    string `json:"codexHome"`
	// Configuration says what is wrong with the configuration, "" when nothing is.
	Configuration string `json:"configuration,omitempty"`
	// UnknownKeys are the keys of config.toml that neither Codex nor we know.
	UnknownKeys []string `json:"unknownKeys,omitempty"`
	// Rules is what is wrong with the rules that people accepted, none of which then counts.
	Rules string `json:"rules,omitempty"`
	// Automatic is what clients answered by themselves, by the newest part of the log of approvals.
	Automatic []string `json:"automatic,omitempty"`
	// TrustedCalls reports whether a call may set every key.
	TrustedCalls bool `json:"trustedCalls"`

	Engine string   `json:"engine,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Can    []string `json:"can,omitempty"`
	Cannot []string `json:"cannot,omitempty"`

	Codex   *appserver.Report `json:"codex,omitempty"`
	Native  *native.Report    `json:"native,omitempty"`
	Sandbox map[string]string `json:"sandbox"` // by tier: "" or why not
	// Quota is what the account of the engine has left.
	Quota *quota `json:"quota,omitempty"`

	// Problem says why no turn can run, "" when turns can run.
	Problem string `json:"problem,omitempty"`
}

// examine runs codex-mcp doctor.
func examine(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	c, err := configure(o, os.Getenv, o.logger(stderr))
	var report bytes.Buffer
	code := doctor(ctx, o, &report, terminal.Width(stdout), c, err)
	if _, err := stdout.Write(report.Bytes()); err != nil {
		return fail(stderr, err)
	}
	return code
}

// doctor checks everything that the server depends on, prints one screen of a terminal with a
// width (or JSON) and returns the exit status: 0 when turns can run, else 1.
func doctor(ctx context.Context, o *options, stdout io.Writer, width int, c *configuration, err error) int {
	d := diagnose(ctx, o, c, err)
	if o.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(d); err != nil {
			return 1
		}
	} else {
		d.print(stdout, width)
	}
	if d.Problem != "" {
		return 1
	}
	return 0
}

func diagnose(ctx context.Context, o *options, c *configuration, err error) *diagnosis {
	d := &diagnosis{
		Version: version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Sandbox: tiers(),
	}
	d.Home, _ = config.Home(os.Getenv)
	if err != nil {
		d.Configuration, d.Problem = err.Error(), err.Error()
		return d
	}
	d.TrustedCalls = c.settings.TrustedCalls
	if bridge, err := c.bridge(o.codex); err == nil {
		d.Codex = c.look(ctx, bridge, o.codex)
		_ = bridge.Close() // only its report was needed
	}
	d.UnknownKeys = config.UnknownToCodex(c.home)
	if _, err := rulefile.New(c.home, nil).List(); err != nil {
		d.Rules = err.Error() + "; none of these rules counts"
	}
	d.Automatic = automatic(c.settings.Approvals.Log)
	if d.Native, err = native.Check(ctx, c.nativeOptions()); err != nil {
		d.Configuration = err.Error()
	}
	e, err := choose(ctx, o, c)
	if err != nil {
		d.Problem = err.Error()
		return d
	}
	defer e.Close()
	d.Engine, d.Reason = e.name, e.reason
	d.Can, d.Cannot = abilities(e.Engine)
	if d.Problem = d.problem(); d.Problem == "" {
		d.Quota = quotaOf(ctx, e.Engine)
	}
	return d
}

// automatic returns what clients answered by themselves, from the newest part of a log of approvals.
func automatic(path string) []string {
	if _, err := os.Stat(path); err != nil {
		return nil // no log, or none yet
	}
	file, err := safefile.Open(path)
	if err != nil {
		return []string{err.Error()}
	}
	defer file.Close()
	const newest = 1 << 20
	if err := file.SeekTail(newest); err != nil {
		return []string{err.Error()}
	}
	lines, err := io.ReadAll(io.LimitReader(file, newest))
	if err != nil {
		return []string{err.Error()}
	}
	return board.Automatic(lines, 3)
}

func (d *diagnosis) problem() string {
	switch {
	case d.Engine == "codex" && d.Codex != nil:
		return d.Codex.Problem
	case d.Configuration != "":
		return d.Configuration
	case d.Native == nil:
		return ""
	case strings.HasPrefix(d.Native.Key, "missing"):
		return "the model provider needs a key: " + strings.TrimPrefix(d.Native.Key, "missing: ")
	}
	return d.Native.Reach
}

// tiers tries each tier of the sandbox.
func tiers() map[string]string {
	found := map[string]string{}
	for _, tier := range []sandbox.Tier{sandbox.TierThread, sandbox.TierNamespaces} {
		_, err := sandbox.New(sandbox.Options{Tier: tier}).
			Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, os.TempDir(), os.Environ())
		found[string(tier)] = ""
		if err != nil {
			found[string(tier)] = err.Error()
		}
	}
	return found
}

// abilities returns which optional parts an engine has, and which it lacks.
func abilities(e engine.Engine) (can, cannot []string) {
	_, resume := e.(engine.Resumer)
	_, list := e.(engine.Library)
	_, account := e.(engine.Accounts)
	_, configure := e.(engine.Configurator)
	_, work := e.(engine.Workspace)
	for _, a := range []struct {
		name string
		has  bool
	}{
		{"run and continue conversations", true}, {"resume", resume}, {"list and archive", list}, {"sign in", account},
		{"show and change the configuration", configure}, {"one-off commands", work}, {"file search", work}, {"diff to remote", work},
	} {
		if a.has {
			can = append(can, a.name)
		} else {
			cannot = append(cannot, a.name)
		}
	}
	return can, cannot
}

// print prints the rows. On a terminal a row is broken between its words; programs that read the
// rows get each in one line.
func (d *diagnosis) print(w io.Writer, width int) {
	const column = 15
	row := func(name, format string, args ...any) {
		rows := []string{terminal.Row(fmt.Sprintf(format, args...))}
		if width > 0 {
			rows = terminal.Wrap(strings.Fields(rows[0]), " ", width-1-column)
		}
		for _, part := range rows {
			fmt.Fprintf(w, "%-*s%s\n", column, name, part)
			name = ""
		}
	}
	row("codex-mcp", "%s on %s", d.Version, d.System)
	name := "configuration"
	for _, fault := range d.configurationFaults() {
		row(name, "%s: %s", d.Home, fault)
		name = ""
	}
	if c := d.Codex; c != nil {
		row("codex", "%s", orFine(c.Problem))
		if c.Path != "" {
			row("", "%s, version %s, %s or newer is needed", c.Path, c.Version, c.Needed)
		}
		if a := c.Account; a != nil && a.Method != "" {
			row("", "signed in by %s", a.Method)
		}
	}
	if n := d.Native; n != nil {
		row("native", "model %q of provider %q at %s", n.Model, n.Provider, n.BaseURL)
		row("", "key: %s; connection: %s", n.Key, orFine(n.Reach))
	}
	for _, tier := range slices.Sorted(maps.Keys(d.Sandbox)) {
		row("sandbox", "%s: %s", tier, orFine(d.Sandbox[tier]))
	}
	if d.Rules != "" {
		row("rules", "%s", d.Rules)
	}
	name = "approvals"
	for _, one := range d.Automatic {
		row(name, "%s", one)
		name = ""
	}
	if d.Engine != "" {
		row("calls", "%s", callsRow(d.TrustedCalls))
		reason := d.Reason
		if d.Codex != nil && d.Codex.Problem != "" {
			reason = strings.Replace(reason, d.Codex.Problem, "see codex", 1)
		}
		row("engine", "%s (%s)", d.Engine, reason)
		row("", "can: %s", strings.Join(d.Can, ", "))
		if len(d.Cannot) > 0 {
			row("", "cannot: %s", strings.Join(d.Cannot, ", "))
		}
	}
	if d.Quota != nil {
		row("quota", "%s", d.Quota)
	}
	if d.Problem != "" {
		row("problem", "%s", d.Problem)
		return
	}
	row("result", "turns can run")
}

// configurationFaults returns what is wrong with the configuration, or one word.
func (d *diagnosis) configurationFaults() []string {
	var all []string
	if d.Configuration != "" {
		all = append(all, d.Configuration)
	}
	for _, key := range d.UnknownKeys {
		all = append(all, key+": unknown key")
	}
	if len(all) == 0 {
		return []string{orFine("")}
	}
	return all
}

func callsRow(trusted bool) string {
	if trusted {
		return "trusted: the argument config may set every key, and so start any program"
	}
	return "the argument config of a call may set only some keys, none of which starts a program"
}

func orFine(problem string) string {
	if problem == "" {
		return "fine"
	}
	return problem
}
