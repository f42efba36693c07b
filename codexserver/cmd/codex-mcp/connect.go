package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// tokenVariable is the environment variable with the token for --connect. A client needs it
// if the server runs on another machine.
const tokenVariable = "CODEX_MCP_TOKEN"

// connectClient relays messages between the client on the standard streams and a server over
// HTTP. It returns the exit status.
func connectClient(ctx context.Context, o *options, _, stderr io.Writer) int {
	defer surviveBrokenPipes()()
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	if err := o.connectTo(ctx, jsonrpc.Stdio()); err != nil {
		return fail(stderr, fmt.Errorf("--connect: %w", err))
	}
	return 0
}

func (o *options) connectTo(ctx context.Context, t jsonrpc.Transport) error {
	po := mcphttp.ProxyOptions{URL: o.connect}
	// Check the URL first, so that a wrong URL is not reported as a missing token.
	err := po.Validate()
	if err == nil {
		po.Token, err = connectToken(os.Getenv)
	}
	if err != nil {
		return err
	}
	p, err := mcphttp.NewProxy(t, &po)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// connectToken returns the token from the environment, or from the file in the home if the
// variable is empty.
func connectToken(getenv func(string) string) (string, error) {
	if token := strings.TrimSpace(getenv(tokenVariable)); token != "" {
		if !tokenPattern.Get().MatchString(token) {
			return "", fmt.Errorf("%s is not a token: want the token that codex-mcp http --show-token prints", tokenVariable)
		}
		return token, nil
	}
	home, err := config.Home(getenv)
	if err != nil {
		return "", err
	}
	file := filepath.Join(home, "codex-mcp", "http-token")
	raw, err := safefile.ReadSecret(file, maxToken)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is missing: start codex-mcp http once on this machine, or set %s for a server on another machine", file, tokenVariable)
	}
	token := strings.TrimSpace(string(raw))
	if err == nil && !tokenPattern.Get().MatchString(token) {
		err = fmt.Errorf("%s does not contain a token: remove the file and start codex-mcp http again", file)
	}
	return token, err
}
