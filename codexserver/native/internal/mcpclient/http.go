package mcpclient

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/text"
)

// maxMessage is the longest message of a server over HTTP, in bytes.
const maxMessage = 16 << 20

// dial connects to a server over HTTP. It uses MCP 2026-07-28 if the server offers it, and a
// handshake otherwise.
func dial(ctx context.Context, o Options) (*Client, error) {
	p := mcphttp.ClientOptions{
		URL: o.Server.URL, Header: http.Header{}, MaxMessage: maxMessage, Transport: o.HTTP,
	}
	if err := p.Validate(); err != nil { // before a missing token
		return nil, err
	}
	var secrets []string
	for name, value := range o.Server.HTTPHeaders {
		p.Header.Set(name, value)
		secrets = append(secrets, value)
	}
	for name, variable := range o.Server.EnvHTTPHeaders {
		if value := strings.TrimSpace(o.Getenv(variable)); value != "" {
			p.Header.Set(name, value)
			secrets = append(secrets, value)
		}
	}
	if variable := o.Server.BearerTokenEnvVar; variable != "" {
		if p.Token = strings.TrimSpace(o.Getenv(variable)); p.Token == "" {
			return nil, fmt.Errorf("the environment variable %s, which its bearer_token_env_var names, is not set",
				variable)
		}
		secrets = append(secrets, p.Token)
	}
	transport, err := mcphttp.NewClient(&p)
	if err != nil {
		return nil, err
	}
	return connect(ctx, transport, o, mcpcall.Options{MaxMessage: maxMessage}, text.NewSecrets(secrets...))
}
