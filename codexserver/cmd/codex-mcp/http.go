package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/codexmcp/codexmcp/internal/httpserve"
	"github.com/spf13/cobra"
)

// httpOptions are the options of codex-mcp http.
type httpOptions struct {
	*options
	httpserve.Flags
	showToken bool
}

// mcpPath is the path of the MCP endpoint.
const mcpPath = "/mcp"

func (o *options) httpCommand() *cobra.Command {
	h := &httpOptions{options: o}
	cmd := &cobra.Command{
		Use:   "http [flags]",
		Short: "Serve MCP over HTTP, for many clients",
		Long: `Serves MCP over Streamable HTTP to the clients of one user, until it receives a signal.
Work in progress may then continue for http.drain_timeout. A request needs the token in
$CODEX_HOME/codex-mcp/http-token, which the first start makes. --show-token prints it
with the configuration of clients. Calls cannot choose approval-policy, config,
profile or sandbox, unless http.unlocked_arguments allows it.

By default only this machine can connect. For other machines set http.hosts and
--behind-proxy. For several users start codex-mcp-gateway.`,
		SuggestFor: []string{"serve", "server", "start"},
		Args:       cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := h.Flags.Check(); err != nil {
				return err
			}
			return o.wantsServer(h.Run)
		},
	}
	h.Add(cmd.Flags())
	cmd.Flags().BoolVar(&h.showToken, "show-token", false, "print the token and the configuration of clients, and exit")
	return cmd
}

// challenge begins the WWW-Authenticate of a refusal.
const challenge = `Bearer realm="codex-mcp"`

// Run serves the one user who started the server, or prints the token.
func (o *httpOptions) Run(ctx context.Context, stdout, stderr io.Writer) error {
	c, err := configure(o.options, os.Getenv, o.logger(stderr))
	if err != nil {
		return err
	}
	if keys := c.settings.HTTP.Gateway; len(keys) > 0 {
		return fmt.Errorf("%s: only codex-mcp-gateway serves this; start it instead of codex-mcp http",
			strings.Join(keys, ", "))
	}
	token, err := loadToken(c.home)
	if err != nil {
		return fmt.Errorf("the token: %w", err)
	}
	if o.showToken {
		return printToken(stdout, o.URL(mcpPath), token)
	}
	c.warn(o.options, stderr)
	hosts := c.settings.HTTP.Hosts
	if err := o.CheckHosts(hosts); err != nil {
		return err
	}
	if len(hosts) > 0 {
		hosts = append(slices.Clip(hosts), "localhost", "127.0.0.1", "::1")
	}
	c.settings.LockedArguments = c.settings.HTTP.Locked(c.settings.LockedArguments)
	return c.withServer(ctx, o.options, func(s *codexserver.Server, _ *choice) error {
		handler, err := streamable.New(s, &streamable.Options{
			Authenticate: bearer(token), Challenge: challenge, Hosts: hosts, Origins: c.settings.HTTP.Origins,
			Logger: c.log,
		})
		if err != nil {
			return err
		}
		m := http.NewServeMux()
		m.Handle(mcpPath, handler)
		m.Handle(mcpPath+"/{$}", handler) // as many people write it
		return (&httpserve.Server{
			Flags: &o.Flags, Mux: m, Backend: handler, Drain: c.settings.HTTP.Drain, Signals: endingSignals(),
			Logger: c.log,
			Ready: func() {
				fmt.Fprintf(stderr, "codex-mcp: serving MCP at %s; codex-mcp http --show-token prints the token\n",
					o.URL(mcpPath))
			},
		}).Serve(ctx)
	})
}
