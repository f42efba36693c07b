package native

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
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
}

// Check reads the configuration as an engine with these options does, requests the provider's
// models, and sends it the key. It asks no model, costs nothing, and waits 5 seconds at most. It
// fails if the configuration cannot be read.
func Check(ctx context.Context, o *Options) (*Report, error) {
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
	cfg, err := e.configFor(ctx, protocol.Config{})
	if err != nil {
		return nil, err
	}
	p := cfg.Provider()
	r := &Report{
		Model: cfg.Model, Provider: cfg.ModelProvider, BaseURL: model.ShowURL(p.BaseURL), Key: "none needed",
		Policy: cfg.ApprovalPolicy, Sandbox: cfg.SandboxMode, Network: cfg.SandboxWorkspaceWrite.NetworkAccess,
	}
	policy := cfg.Sandbox()
	policy.WritableRoots = nil
	if roots, err := e.newSandbox(cfg).Roots(policy, "", environ(cfg)); err == nil {
		r.Temporary = roots.Paths
	}
	for _, to := range quiet.Failover.To {
		line := fmt.Sprintf("model %q of provider %q", to.Model, to.Provider)
		if _, err := e.next(cfg, to); err != nil {
			line += ": " + err.Error()
		}
		r.Failover = append(r.Failover, line)
	}
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
		r.Key, r.Reach = "missing: set "+name, "not tried without the key"
		return r, nil
	}
	if err := e.client(p).Check(ctx, cfg.Model); err != nil {
		r.Reach = err.Error()
	}
	return r, nil
}
