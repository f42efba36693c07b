package native

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

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
	Network bool                    `json:"networkAccess,omitempty"`
	// Key says where the key comes from: "none needed", "set in NAME",
	// "missing: set NAME", "from auth.json".
	Key string `json:"key"`
	// Failover has a line for each provider where a turn goes on: its model, and why it cannot answer if
	// that is known.
	Failover []string `json:"failover,omitempty"`
	// Reach says why the provider does not answer, "" when it does.
	Reach string `json:"reach,omitempty"`
}

// Check reads the configuration as an engine with these options does, and requests the
// provider's models. It asks no model, and waits 5 seconds at most. It fails if the
// configuration cannot be read.
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
	cfg, err := e.config(protocol.Config{})
	if err != nil {
		return nil, err
	}
	p := cfg.Provider()
	r := &Report{
		Model: cfg.Model, Provider: cfg.ModelProvider, BaseURL: model.ShowURL(p.BaseURL), Key: "none needed",
		Policy: cfg.ApprovalPolicy, Sandbox: cfg.SandboxMode, Network: cfg.SandboxWorkspaceWrite.NetworkAccess,
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
	if name != "" {
		r.Key = "set in " + name
		if e.getenv(name) == "" {
			r.Key = "missing: set " + name
		}
	}
	if key, err := auth.APIKey(cfg.Home); strings.HasPrefix(r.Key, "missing") && p.RequiresOpenAIAuth && err == nil && key != "" {
		r.Key = "from auth.json"
	}
	r.Reach = e.fetch(ctx, p.BaseURL, r.BaseURL)
	return r, nil
}

// fetchTimeout bounds the request of fetch.
const fetchTimeout = 5 * time.Second

// fetch requests the provider's models and returns why the provider does not answer. Any
// answer counts, even one that requires a key. shown is the URL without secrets.
func (e *Engine) fetch(ctx context.Context, baseURL, shown string) string {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(baseURL, "/")+"/models", nil)
	if err != nil {
		return noAnswer(shown, err)
	}
	resp, err := e.options.HTTPClient.Do(req)
	if err != nil {
		return noAnswer(shown, err)
	}
	resp.Body.Close()
	return ""
}

// noAnswer says in plain words why a provider does not answer.
func noAnswer(baseURL string, err error) string {
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the name %s cannot be resolved: there is no network, or a proxy is needed", unknown.Name)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s: start the model server, or correct base_url", baseURL)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s does not answer within %v", baseURL, fetchTimeout)
	}
	return fmt.Sprintf("%s does not answer: %v", baseURL, err)
}
