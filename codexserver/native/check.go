package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/mcpclient"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Report is what [Check] finds: the model and the provider that an engine uses.
type Report struct {
	// Model, Provider and BaseURL are those of a conversation without settings of its own.
	Model    string `json:"model"`
	Provider string `json:"provider"`
	BaseURL  string `json:"baseUrl"`
	// Policy, Sandbox and Network are what commands of such a conversation may do. Network says
	// whether a sandbox that lets commands write also lets them use the network.
	Policy  protocol.ApprovalPolicy `json:"approvalPolicy"`
	Sandbox protocol.SandboxMode    `json:"sandboxMode"`
	Network bool                    `json:"networkAccess,omitzero"`
	// Reads, Writes and Reaches say what a profile of permissions lets commands do, "" where the sandbox mode says it.
	Reads   string `json:"reads,omitempty"`
	Writes  string `json:"writes,omitempty"`
	Reaches string `json:"reaches,omitempty"`
	// Temporary are the folders for temporary files in which such commands can write, in a sandbox that
	// lets them write. One that holds the home or $CODEX_HOME is none.
	Temporary []string `json:"temporary,omitempty"`
	// Key says where the key comes from: "none needed", "set in NAME",
	// "missing: set NAME", "from auth.json", "in config.toml", "printed by NAME".
	Key string `json:"key"`
	// Failover has a line for each provider where a turn goes on: its model, and why it cannot answer if
	// that is known.
	Failover []string `json:"failover,omitempty"`
	// Reach says why no turn can run, and what to do about it: the provider does not answer, refuses the
	// key, or does not list the model. It is "" if nothing is known against it.
	Reach string `json:"reach,omitempty"`
	// Unconfined says why no sandbox confines a command, "" if one does.
	Unconfined string `json:"unconfined,omitempty"`
	// Broken are keys whose promise does not hold although turns run, each with why and what helps.
	Broken []string `json:"broken,omitempty"`
}

// Check reads the configuration as an engine with these options does, looks for the files and programs that it names,
// requests the provider's models, and sends it the key. It asks no model, costs nothing, and waits 5 seconds at most for the
// provider. With start it also starts the MCP servers, and ends them. It fails if the configuration cannot be read.
func Check(ctx context.Context, o *Options, start bool) (*Report, error) {
	quiet := Options{}
	if o != nil {
		quiet = *o
	}
	quiet.Logger = nil // the engine itself warns
	e, err := New(&quiet)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	cwd, _ := os.Getwd() // a conversation names its own
	cfg, err := e.configFor(ctx, protocol.Config{Cwd: cwd})
	if err != nil {
		return nil, err
	}
	p := cfg.Provider()
	r := &Report{
		Model: cfg.Model, Provider: cfg.ModelProvider, BaseURL: model.ShowURL(p.BaseURL), Key: "none needed",
		Policy: cfg.ApprovalPolicy, Sandbox: cfg.SandboxMode, Network: cfg.SandboxWorkspaceWrite.NetworkAccess,
	}
	sandbox, policy := e.newSandbox(cfg), cfg.Sandbox()
	policy.WritableRoots = nil
	if roots, err := sandbox.Roots(policy, "", environ(cfg)); err == nil {
		r.Temporary = roots.Paths
	}
	if set := permitted(cfg); set != nil {
		r.Reads, r.Writes = set.Words()
		if set.Whole() {
			r.Reaches = cfg.Permitted.Hosts(r.Network)
		}
	}
	if _, err := sandbox.Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, cfg.Cwd,
		environ(cfg)); err != nil {
		if r.Unconfined = err.Error(); len(e.options.Sandbox.Helper) > 0 {
			r.Broken = append(r.Broken, "sandbox.helper: "+r.Unconfined+"; install it or correct the key, or you are "+
				"asked about every command")
		}
	}
	for i, to := range e.options.Failover.To {
		line := fmt.Sprintf("model %q of provider %q", to.Model, to.Provider)
		if _, err := e.next(cfg, to); err != nil {
			line += ": " + err.Error()
			r.Broken = append(r.Broken, fmt.Sprintf("failover.to.%d: %s; correct that, or no turn goes on there", i,
				line))
		}
		r.Failover = append(r.Failover, line)
	}
	cfg.DeclineElicitations = true
	c := &conversation{engine: e, cfg: cfg}
	c.work.life, c.work.end = context.WithCancel(ctx)
	defer c.work.stop(e.options.Logger)
	if start {
		c.startServers()
	}
	r.reach(ctx, e, cfg)
	if start {
		<-c.work.servers.ready
		for _, failed := range c.work.servers.warnings {
			r.Broken = append(r.Broken, failed+"; correct that in mcp_servers, or remove it")
		}
		return r, nil
	}
	for name, server := range cfg.MCPServers {
		if server.Command == "" || server.Enabled != nil && !*server.Enabled {
			continue
		}
		_, _, err := mcpclient.Find(&mcpclient.Options{Server: server, Environ: cfg.Environ,
			Dir: e.folderOf(server, cfg.Cwd), Programs: e.programs})
		if err != nil {
			r.Broken = append(r.Broken, fmt.Sprintf("mcp_servers.%s: %v; correct that, or its tools are missing",
				config.JoinKey(name), err))
		}
	}
	slices.Sort(r.Broken)
	return r, nil
}

// reach looks for the key and the instructions, and asks the provider.
func (r *Report) reach(ctx context.Context, e *Engine, cfg *config.Config) {
	p := cfg.Provider()
	name := p.EnvKey
	if name == "" && p.RequiresOpenAIAuth {
		name = "OPENAI_API_KEY"
	}
	signedIn, _ := auth.APIKey(cfg.Home) // a file that cannot be read has none
	switch {
	case p.BearerToken != "" && e.getenv(p.EnvKey) == "":
		r.Key = "in config.toml"
	case p.Auth != nil:
		r.Key = "printed by " + p.Auth.Command
	case name == "":
	case e.getenv(name) != "":
		r.Key = "set in " + name
	case p.RequiresOpenAIAuth && signedIn != "":
		r.Key = "from auth.json"
	default:
		r.Key, r.Reach = "missing: set "+name, "the model provider needs a key: set "+name
		return
	}
	_, err := instructions(cfg, false, []string{"sh"}) // without these files no conversation begins
	if err == nil {
		_, _, err = userInstructions(cfg)
	}
	client := e.client(cfg.ModelProvider, p)
	if err == nil {
		err = client.Check(ctx, cfg.Model)
	}
	if err != nil {
		r.Reach = err.Error()
	} else if said := client.Window(ctx, cfg.Model); said > 0 && cfg.ContextWindow > said {
		r.Broken = append(r.Broken, fmt.Sprintf("model_context_window: %d, and the server takes %d tokens: remove "+
			"the key, or start the server with more", cfg.ContextWindow, said))
	}
}

// Reach connects to a provider's address, unless it is "", as [Check] does, but without a key. Whatever is answered is no error,
// which says what to do about it.
func Reach(ctx context.Context, address string, getenv func(string) string) error {
	if address == "" {
		return nil
	}
	web, err := model.HTTPClient(getenv)
	if err != nil {
		return err
	}
	defer web.CloseIdleConnections()
	err = (&model.Client{Provider: config.Provider{BaseURL: address}, HTTP: web, Getenv: getenv}).Check(ctx, "")
	if unreached, is := errors.AsType[*model.ConnectError](err); is {
		return unreached
	}
	return nil
}
