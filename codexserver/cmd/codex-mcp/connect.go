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
	"github.com/codexmcp/codexmcp/codexserver/internal/secretfile"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// tokenVariable holds the token for --connect if its file is on another machine.
const tokenVariable = "CODEX_MCP_TOKEN"

// connectClient connects the client on the standard streams to a server over HTTP.
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
	po := streamable.ProxyOptions{URL: o.connect}
	// The URL first: a missing token does not explain a wrong URL.
	err := po.Validate()
	if err == nil {
		po.Token, err = connectToken(os.Getenv)
	}
	if err != nil {
		return err
	}
	p, err := streamable.NewProxy(t, &po)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// connectToken returns the token from the environment, or else from the file in the home.
func connectToken(getenv func(string) string) (string, error) {
	if token := strings.TrimSpace(getenv(tokenVariable)); token != "" {
		if !wholeToken.MatchString(token) {
			return "", fmt.Errorf("%s is not a token: want the line that codex-mcp http --show-token prints", tokenVariable)
		}
		return token, nil
	}
	home, err := config.Home(getenv)
	if err != nil {
		return "", err
	}
	file := filepath.Join(home, "codex-mcp", "http-token")
	raw, err := secretfile.Read(file, maxToken)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is missing: start codex-mcp http once on this machine, or set %s for a server on another machine", file, tokenVariable)
	}
	token := strings.TrimSpace(string(raw))
	if err == nil && !wholeToken.MatchString(token) {
		err = fmt.Errorf("%s has no token: remove the file and start codex-mcp http again", file)
	}
	return token, err
}
