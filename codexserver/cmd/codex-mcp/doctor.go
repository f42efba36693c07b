package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/auth"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
	// TrustedCalls reports whether a call may set every key.
	TrustedCalls bool `json:"trustedCalls"`

	Engine string   `json:"engine,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Can    []string `json:"can,omitempty"`
	Cannot []string `json:"cannot,omitempty"`

	Codex   *appserver.Report `json:"codex,omitempty"`
	Native  *nativeReport     `json:"native,omitempty"`
	Sandbox map[string]string `json:"sandbox"` // by tier: "" or why not
	// Quota is what the account of the engine has left.
	Quota *quota `json:"quota,omitempty"`

	// Problem says why no turn can run, "" when turns can run.
	Problem string `json:"problem,omitempty"`
}

// nativeReport is the model and the provider that the native engine would use.
type nativeReport struct {
	Model    string `json:"model"`
	Provider string `json:"provider"`
	BaseURL  string `json:"baseUrl"`
	// Key says where the key comes from: "none needed", "set in NAME",
	// "missing: set NAME", "from auth.json".
	Key string `json:"key"`
	// Reach says why the provider does not answer, "" when it does.
	Reach string `json:"reach,omitempty"`
}

// examine runs codex-mcp doctor.
func examine(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	c, err := configure(o, os.Getenv, o.logger(stderr))
	var report bytes.Buffer
	code := doctor(ctx, o, &report, c, err)
	if _, err := stdout.Write(report.Bytes()); err != nil {
		return fail(stderr, err)
	}
	return code
}

// doctor checks everything that the server depends on, prints one screen (or JSON) and
// returns the exit status: 0 when turns can run, else 1.
func doctor(ctx context.Context, o *options, stdout io.Writer, c *configuration, err error) int {
	d := diagnose(ctx, o, c, err)
	if o.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(d); err != nil {
			return 1
		}
	} else {
		d.print(stdout)
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
	if cfg, err := c.load(); err != nil {
		d.Configuration = err.Error()
	} else {
		d.Native = nativeEngine(ctx, cfg)
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

// load reads the configuration of a conversation as the native engine does.
func (c *configuration) load() (*config.Config, error) {
	return config.Load(config.Layers{Home: c.home, Overrides: c.overrides, OpenAIBaseURL: os.Getenv("OPENAI_BASE_URL")})
}

func nativeEngine(ctx context.Context, cfg *config.Config) *nativeReport {
	p := cfg.Provider()
	r := &nativeReport{Model: cfg.Model, Provider: cfg.ModelProvider, BaseURL: p.BaseURL, Key: "none needed"}
	name := p.EnvKey
	if name == "" && p.RequiresOpenAIAuth {
		name = "OPENAI_API_KEY"
	}
	if name != "" {
		r.Key = "set in " + name
		if os.Getenv(name) == "" {
			r.Key = "missing: set " + name
		}
	}
	if key, err := auth.APIKey(cfg.Home); strings.HasPrefix(r.Key, "missing") && p.RequiresOpenAIAuth && err == nil && key != "" {
		r.Key = "from auth.json"
	}
	r.Reach = reach(ctx, p.BaseURL)
	return r
}

// reachTimeout bounds the request of reach.
const reachTimeout = 5 * time.Second

// reach requests the provider's models, with the client of the native engine, and returns
// why the provider does not answer. Any answer counts, even one that requires a key.
func reach(ctx context.Context, baseURL string) string {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(baseURL, "/")+"/models", nil)
	if err != nil {
		return err.Error()
	}
	client, err := model.HTTPClient(os.Getenv)
	if err != nil {
		return err.Error()
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	resp.Body.Close()
	return ""
}

// abilities returns which optional parts an engine has, and which it lacks.
func abilities(e engine.Engine) (can, cannot []string) {
	_, resume := e.(engine.Resumer)
	_, list := e.(engine.Library)
	_, account := e.(engine.Accounts)
	_, configure := e.(engine.Configurator)
	_, command := e.(engine.Commander)
	_, search := e.(engine.Searcher)
	_, diff := e.(engine.Differ)
	for _, a := range []struct {
		name string
		has  bool
	}{
		{"run and continue conversations", true}, {"resume", resume}, {"list and archive", list}, {"sign in", account},
		{"show and change the configuration", configure}, {"one-off commands", command}, {"file search", search}, {"diff to remote", diff},
	} {
		if a.has {
			can = append(can, a.name)
		} else {
			cannot = append(cannot, a.name)
		}
	}
	return can, cannot
}

func (d *diagnosis) print(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-14s %s\n", name, terminal.Row(fmt.Sprintf(format, args...)))
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
	if d.Engine != "" {
		row("calls", "%s", callsRow(d.TrustedCalls))
	}
	if d.Engine != "" {
		row("engine", "%s (%s)", d.Engine, d.Reason)
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
	return "the argument config may set only the keys of a list"
}

func orFine(problem string) string {
	if problem == "" {
		return "fine"
	}
	return problem
}
