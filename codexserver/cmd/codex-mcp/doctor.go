package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/program"
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

	Engine string `json:"engine,omitempty"`
	Reason string `json:"reason,omitempty"`

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
	json bool
}

// Run checks everything that the server depends on, and prints one screen of a terminal (or JSON). The
// exit status is 1 when no turn can run.
func (o *doctorOptions) Run(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	if !o.logs {
		o.log = slog.LevelError // the report has the warnings
	}
	c, err := configure(o.options, os.Getenv, o.logger(stderr))
	d := diagnose(ctx, o.options, c, err)
	var report bytes.Buffer
	if o.json {
		enc := json.NewEncoder(&report)
		enc.SetIndent("", "  ")
		_ = enc.Encode(d) // every part of it can be encoded
	} else {
		d.print(&report)
	}
	if _, err := stdout.Write(report.Bytes()); err != nil {
		return err
	}
	if d.Problem != "" {
		return status(1)
	}
	return nil
}

// diagnose looks at everything. An error is that of the configuration.
func diagnose(ctx context.Context, o *options, c *configuration, err error) *diagnosis {
	d := &diagnosis{Version: program.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Sandbox: unconfined()}
	d.Home, _ = config.Home(os.Getenv)
	if err != nil {
		d.Configuration, d.Problem = err.Error(), err.Error()
		return d
	}
	d.read, d.Log, d.TrustedCalls = true, c.logFile(), c.settings.TrustedCalls
	d.Automatic = automatic(d.Log)
	if bridge, err := c.bridge(o.codex); err == nil {
		d.Codex = c.look(ctx, bridge, o.codex)
		_ = bridge.Close() // only its report was needed
	}
	d.UnknownKeys = config.Unknown(c.home, c.overrides, true)
	if _, err := rulefile.New(c.home, nil).List(); err != nil {
		d.Rules = err.Error() + "; none of these rules counts"
	}
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
	if d.Problem = d.problem(); d.Problem == "" {
		d.Quota = quotaOf(ctx, e.limits)
	}
	return d
}

// quota is what the account has used.
type quota struct {
	// Unknown says why that is not known, "" when it is.
	Unknown string `json:"unknown,omitempty"`
	// Reported is when the provider reported the limits; nil means now.
	Reported *time.Time `json:"told,omitempty"`
	// RateLimits are nil if they are not known.
	*protocol.RateLimits
	words string // what is left of them now, for people
}

// quotaOf returns what the account has used. It sends no request to a model.
func quotaOf(ctx context.Context, limits func(context.Context) (*protocol.RateLimits, time.Time, error)) *quota {
	const timeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reported, at, err := limits(ctx)
	switch {
	case err != nil:
		return &quota{Unknown: err.Error()}
	case reported == nil:
		return &quota{Unknown: "no limits were reported"}
	case at.IsZero():
		return &quota{RateLimits: reported, words: reported.Words(0)}
	}
	q := &quota{RateLimits: reported, Reported: &at, words: reported.Words(time.Since(at))}
	if q.words == "" {
		return &quota{Unknown: "the limits that were reported last have been reset since"}
	}
	q.words += " (reported " + at.UTC().Format(time.RFC3339) + ")"
	return q
}

// automatic returns what clients answered by themselves, from the newest part of a log of approvals.
func automatic(path string) []string {
	const newest = 1 << 20
	lines, err := safefile.Read(path, 2*maxLog)
	switch {
	case path == "", errors.Is(err, fs.ErrNotExist):
		return nil // no log, or none yet
	case err != nil:
		return []string{err.Error()}
	}
	return record.Automatic(lines[max(len(lines)-newest, 0):], 3)
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

// print prints what a person needs: whether tasks run and with what, what is missing with all that
// can be done about it, what commands may do, and what is wrong.
func (d *diagnosis) print(w io.Writer) {
	if d.Problem == "" {
		row(w, "result", "tasks can run, with "+d.runs())
	} else {
		row(w, "result", "no task can run: "+d.Problem)
		row(w, "to do", d.remedies()...)
	}
	if d.Native != nil && d.Engine == "native" {
		row(w, "commands", d.commands())
	}
	row(w, "warning", d.warnings()...)
	if d.read {
		recorded := "are recorded in " + d.Log
		if d.Log == "" {
			recorded = "are not recorded (approvals.log)"
		}
		row(w, "approvals", append([]string{recorded}, d.Automatic...)...)
		row(w, "conversations", "are kept in "+filepath.Join(d.Home, "sessions"))
		row(w, "log", "goes to standard error, which a client keeps in its own logs; --log debug has more")
	}
	if d.Quota != nil {
		row(w, "quota", d.Quota.words)
	}
	row(w, "more", "codex-mcp doctor --json has each check")
}

// row prints the texts that are not empty, each as one line, the first with the name.
func row(w io.Writer, name string, texts ...string) {
	for _, text := range texts {
		if text != "" {
			fmt.Fprintf(w, "%-15s%s\n", name, terminal.Row(text))
			name = ""
		}
	}
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
	codex := "install Codex and sign in: npm i -g @openai/codex, then codex login"
	if c := d.Codex; c != nil && c.Path != "" {
		codex = "let the installed Codex run them: " + c.Problem
	}
	name, missing := strings.CutPrefix(d.Native.Key, "missing: set ")
	at, err := url.Parse(d.Native.BaseURL)
	for _, r := range []struct {
		helps bool
		text  string
	}{
		{d.Native.Reach != "" && !missing, "mend what the first line names"},
		{d.Codex != nil, codex},
		{missing, "set " + name + " to a key of the provider"},
		{err != nil || !webaddr.Loopback(at.Hostname()), "use a model server of your own, such as Ollama: -c model_provider=oss -m NAME"},
		{true, "see it work without any of these: codex-mcp ask --demo"},
	} {
		switch {
		case r.helps && all == nil:
			all = []string{r.text}
		case r.helps:
			all = append(all, "or "+r.text)
		}
	}
	return all
}

// commands says what commands of a task may do without a question.
func (d *diagnosis) commands() string {
	n := d.Native
	asked := map[protocol.ApprovalPolicy]string{
		protocol.ApprovalUntrusted: "you are asked before any command that is not known to be harmless",
		protocol.ApprovalOnFailure: "you are asked about a command that the sandbox stopped",
		protocol.ApprovalOnRequest: "you are asked about what needs more",
		protocol.ApprovalNever:     "you are never asked",
	}[n.Policy]
	may := ""
	switch full := n.Sandbox == protocol.SandboxDangerFullAccess; {
	case full && n.Policy == protocol.ApprovalUntrusted:
		may = "no sandbox confines a command; " + asked
	case full:
		may = "commands run without a sandbox and without a question"
	case d.Sandbox != "" && n.Policy == protocol.ApprovalNever:
		may = "no sandbox works, and nobody is asked, so no command runs"
	case d.Sandbox != "":
		may = "no sandbox works, so you are asked about every command"
	case n.Sandbox == protocol.SandboxWorkspaceWrite:
		temporary, network := " and, for temporary files, in "+strings.Join(n.Temporary, " and "), "no network"
		if len(n.Temporary) == 0 {
			temporary = " (nowhere for temporary files: the folders for them are excluded, or hold your home or $CODEX_HOME)"
		}
		if n.Network {
			network = "the network"
		}
		may = "run in a sandbox that reads your files, writes in the folder of the task" + temporary + ", and has " + network + "; " + asked
	default:
		may = "run in a sandbox that reads your files, writes nothing and has no network; " + asked
	}
	return fmt.Sprintf("%s (sandbox_mode %s, approval_policy %s)", may, n.Sandbox, n.Policy)
}

// warnings returns what is wrong although tasks may run.
func (d *diagnosis) warnings() (all []string) {
	if d.Configuration != d.Problem {
		all = append(all, d.Configuration)
	}
	for _, key := range d.UnknownKeys {
		all = append(all, "unknown key: "+key)
	}
	all = append(all, d.Rules)
	if d.Sandbox != "" {
		all = append(all, "the sandbox does not work: "+d.Sandbox)
	}
	if d.TrustedCalls {
		all = append(all, "calls.trusted: the argument config of a call may set every key, and so start any program")
	}
	return all
}
