package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/webaddr"
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
	// Log is the path of the log of approvals, "" if there is none.
	Log string `json:"approvalsLog"`
	// Automatic is what clients answered by themselves, by the newest part of that log.
	Automatic []string `json:"automatic,omitempty"`
	// TrustedCalls reports whether a call may set every key.
	TrustedCalls bool `json:"trustedCalls"`

	Engine string   `json:"engine,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Can    []string `json:"can,omitempty"`
	Cannot []string `json:"cannot,omitempty"`

	Codex   *appserver.Report `json:"codex,omitempty"`
	Native  *native.Report    `json:"native,omitempty"`
	Sandbox string            `json:"sandbox"` // "" or why it confines no command
	read    bool              // codex-mcp.toml could be read
	// Quota is what the account of the engine has left.
	Quota *quota `json:"quota,omitempty"`

	// Problem says why no turn can run, "" when turns can run.
	Problem string `json:"problem,omitempty"`
}

// doctorOptions are the options of codex-mcp doctor.
type doctorOptions struct {
	*options
	json, verbose bool
	quiet         bool // the command line has no --log
}

// Run runs codex-mcp doctor.
func (o *doctorOptions) Run(ctx context.Context, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	if o.quiet {
		o.log = slog.LevelError // the report has the warnings
	}
	c, err := configure(o.options, os.Getenv, o.logger(stderr))
	var report bytes.Buffer
	code := o.doctor(ctx, &report, width(stdout), c, err)
	if _, err := stdout.Write(report.Bytes()); err != nil {
		return fail(stderr, err)
	}
	return code
}

// doctor checks everything that the server depends on, prints one screen of a terminal with a
// width (or JSON) and returns the exit status: 0 when turns can run, else 1.
func (o *doctorOptions) doctor(ctx context.Context, stdout io.Writer, width int, c *configuration, err error) int {
	d := diagnose(ctx, o.options, c, err)
	if o.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(d); err != nil {
			return 1
		}
	} else {
		d.print(stdout, width, o.verbose)
	}
	if d.Problem != "" {
		return 1
	}
	return 0
}

func diagnose(ctx context.Context, o *options, c *configuration, err error) *diagnosis {
	d := &diagnosis{
		Version: version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Sandbox: unconfined(),
	}
	d.Home, _ = config.Home(os.Getenv)
	if err != nil {
		d.Configuration, d.Problem = err.Error(), err.Error()
		return d
	}
	d.read, d.Log = true, c.logFile()
	d.TrustedCalls = c.settings.TrustedCalls
	if bridge, err := c.bridge(o.codex); err == nil {
		d.Codex = c.look(ctx, bridge, o.codex)
		_ = bridge.Close() // only its report was needed
	}
	d.UnknownKeys = config.UnknownToCodex(c.home, c.overrides)
	if _, err := rulefile.New(c.home, nil).List(); err != nil {
		d.Rules = err.Error() + "; none of these rules counts"
	}
	d.Automatic = automatic(c.logFile())
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
	return record.Automatic(lines, 3)
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

// unconfined says why the sandbox confines no command here, or returns "".
func unconfined() string {
	_, err := box.New(box.Options{}).Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, os.TempDir(), os.Environ())
	if err != nil {
		return err.Error()
	}
	return ""
}

// abilities returns which optional parts an engine has, and which it lacks.
func abilities(e engine.Engine) (can, cannot []string) {
	_, resume := e.(engine.Resumer)
	_, list := e.(engine.Library)
	_, account := e.(engine.Accounts)
	_, work := e.(engine.Searcher)
	for _, a := range []struct {
		name string
		has  bool
	}{
		{"run and continue conversations", true}, {"resume", resume}, {"list", list}, {"account", account},
		{"file search", work},
	} {
		if a.has {
			can = append(can, a.name)
		} else {
			cannot = append(cannot, a.name)
		}
	}
	return can, cannot
}

// column is where the text of a row begins.
const column = 15

// screen prints rows: a name, and a text that is broken between its words on a terminal. Programs
// that read the rows get each in one line.
type screen struct {
	w     io.Writer
	width int // of the terminal; 0 for programs
}

func (s screen) row(name, format string, args ...any) {
	rows := []string{terminal.Row(fmt.Sprintf(format, args...))}
	if s.width > 0 {
		rows = wrap(rows[0], s.width-1-column)
	}
	for _, part := range rows {
		fmt.Fprintf(s.w, "%-*s%s\n", column, name, part)
		name = ""
	}
}

// rows prints a row for each text, of which only the first has the name.
func (s screen) rows(name string, texts []string) {
	for _, one := range texts {
		s.row(name, "%s", one)
		name = ""
	}
}

// print prints what a person needs: whether tasks run and with what, what is missing with all that
// can be done about it, what commands may do, and what is wrong.
func (d *diagnosis) print(w io.Writer, width int, verbose bool) {
	s := screen{w, width}
	if d.Problem == "" {
		s.row("result", "tasks can run, with %s", d.runs())
	} else {
		s.row("result", "no task can run: %s", d.Problem)
		s.rows("to do", d.remedies())
	}
	if n := d.Native; n != nil && d.Engine == "native" {
		s.row("commands", "%s", d.commands())
	}
	s.rows("warning", d.warnings())
	if d.read {
		s.rows("approvals", d.approvals())
		s.row("conversations", "are kept in %s", filepath.Join(d.Home, "sessions"))
		s.row("log", "goes to standard error, which a client keeps in its own logs; --log debug has more")
	}
	if d.Quota != nil && d.Quota.Unknown == "" {
		s.row("quota", "%s", d.Quota)
	}
	if verbose {
		d.printRest(s)
	} else {
		s.row("more", "codex-mcp doctor --verbose shows each check")
	}
}

// approvals says where approvals are recorded, and what clients answered by themselves.
func (d *diagnosis) approvals() []string {
	where := "are recorded in " + d.Log
	if d.Log == "" {
		where = "are not recorded (approvals.log)"
	}
	return append([]string{where}, d.Automatic...)
}

// runs says what a task runs with.
func (d *diagnosis) runs() string {
	switch n := d.Native; {
	case d.Engine == "native" && n == nil:
		return "the native engine"
	case d.Engine == "native":
		return fmt.Sprintf("the native engine: model %q of provider %q at %s", n.Model, n.Provider, n.BaseURL)
	}
	text := "the installed Codex"
	if c := d.Codex; c != nil {
		if text += " " + c.Version; c.Account != nil && c.Account.Method != "" {
			text += ", signed in by " + string(c.Account.Method)
		}
	}
	return text
}

// remedies returns what a person can do so that tasks run. One of them is enough.
func (d *diagnosis) remedies() (all []string) {
	if d.Engine == "codex" || d.Native == nil {
		return []string{"correct that; codex-mcp ask --demo shows how it works meanwhile"}
	}
	name, missing := strings.CutPrefix(d.Native.Key, "missing: set ")
	if d.Native.Reach != "" && !missing {
		all = append(all, "mend what the first line names")
	}
	if c := d.Codex; c != nil && c.Path == "" {
		all = append(all, "install Codex and sign in: npm i -g @openai/codex, then codex login")
	} else if c != nil {
		all = append(all, "let the installed Codex run them: "+c.Problem)
	}
	if missing {
		all = append(all, "set "+name+" to a key of the provider")
	}
	if at, err := url.Parse(d.Native.BaseURL); err != nil || !webaddr.Loopback(at.Hostname()) {
		all = append(all, "use a model server of your own, such as Ollama: -c model_provider=oss -m NAME")
	}
	all = append(all, "see it work without any of these: codex-mcp ask --demo")
	for i := range all[1:] {
		all[i+1] = "or " + all[i+1]
	}
	return all
}

// commands says what commands of a task may do without a question.
func (d *diagnosis) commands() string {
	n := d.Native
	keys := fmt.Sprintf("(sandbox_mode %s, approval_policy %s)", n.Sandbox, n.Policy)
	if n.Sandbox == protocol.SandboxDangerFullAccess {
		if n.Policy == protocol.ApprovalUntrusted {
			return "no sandbox confines a command; " + askedWords(n.Policy) + " " + keys
		}
		return "commands run without a sandbox and without a question " + keys
	}
	if d.Sandbox == "" {
		may := "reads your files, writes nothing and has no network"
		if n.Sandbox == protocol.SandboxWorkspaceWrite {
			may = "reads your files, writes in the folder of the task" + temporary(n.Temporary) + ", and has no network"
			if n.Network {
				may = strings.Replace(may, "no network", "the network", 1)
			}
		}
		return fmt.Sprintf("run in a sandbox that %s; %s %s", may, askedWords(n.Policy), keys)
	}
	if n.Policy == protocol.ApprovalNever {
		return "no sandbox works, and nobody is asked, so no command runs " + keys
	}
	return "no sandbox works, so you are asked about every command " + keys
}

// temporary says where commands can write temporary files.
func temporary(folders []string) string {
	if len(folders) == 0 {
		return " (nowhere for temporary files: the folders for them are excluded, or hold your home or $CODEX_HOME)"
	}
	return " and, for temporary files, in " + strings.Join(folders, " and ")
}

// askedWords says what a person is asked under a policy.
func askedWords(policy protocol.ApprovalPolicy) string {
	return map[protocol.ApprovalPolicy]string{
		protocol.ApprovalUntrusted: "you are asked before any command that is not known to be harmless",
		protocol.ApprovalOnFailure: "you are asked about a command that the sandbox stopped",
		protocol.ApprovalOnRequest: "you are asked about what needs more",
		protocol.ApprovalNever:     "you are never asked",
	}[policy]
}

// warnings returns what is wrong although tasks may run.
func (d *diagnosis) warnings() (all []string) {
	for _, fault := range d.configurationFaults() {
		if fault != d.Problem {
			all = append(all, fault)
		}
	}
	if d.Rules != "" {
		all = append(all, d.Rules)
	}
	if fault := d.Sandbox; fault != "" {
		all = append(all, "the sandbox does not work: "+fault)
	}
	if d.TrustedCalls {
		all = append(all, "calls.trusted: the argument config of a call may set every key, and so start any program")
	}
	return all
}

// printRest prints each check.
func (d *diagnosis) printRest(s screen) {
	s.row("codex-mcp", "%s on %s", d.Version, d.System)
	s.row("configuration", "%s", d.Home)
	if c := d.Codex; c != nil {
		s.row("codex", "%s", orFine(c.Problem))
		if c.Path != "" {
			s.row("", "%s, version %s, %s or newer is needed", c.Path, c.Version, c.Needed)
		}
	}
	if n := d.Native; n != nil {
		s.row("native", "model %q of provider %q at %s", n.Model, n.Provider, n.BaseURL)
		s.row("", "key: %s; connection: %s", n.Key, orFine(n.Reach))
		for _, line := range n.Failover {
			s.row("failover", "%s", line)
		}
	}
	s.row("sandbox", "%s", orFine(d.Sandbox))
	if d.Engine == "" {
		return
	}
	reason := d.Reason
	if d.Codex != nil && d.Codex.Problem != "" {
		reason = strings.Replace(reason, d.Codex.Problem, "see codex", 1)
	}
	s.row("engine", "%s (%s)", d.Engine, reason)
	s.row("", "can: %s", strings.Join(d.Can, ", "))
	if len(d.Cannot) > 0 {
		s.row("", "cannot: %s", strings.Join(d.Cannot, ", "))
	}
	if d.Quota != nil && d.Quota.Unknown != "" {
		s.row("quota", "%s", d.Quota)
	}
}

// configurationFaults returns what is wrong with the configuration.
func (d *diagnosis) configurationFaults() []string {
	var all []string
	if d.Configuration != "" {
		all = append(all, d.Configuration)
	}
	for _, key := range d.UnknownKeys {
		all = append(all, "unknown key: "+key)
	}
	return all
}

func orFine(problem string) string {
	if problem == "" {
		return "fine"
	}
	return problem
}
