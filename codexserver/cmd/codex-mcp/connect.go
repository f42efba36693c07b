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

// tokenVariable has the token for --connect where its file is not at hand.
const tokenVariable = "CODEX_MCP_TOKEN"

// connectClient connects the client on the standard streams to a server over HTTP.
func connectClient(ctx context.Context, o *options, _, stderr io.Writer) int {
	defer surviveBrokenPipes()()
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	token, err := connectToken(os.Getenv)
	if err == nil {
		err = o.connectTo(ctx, token, jsonrpc.Stdio())
	}
	if err != nil {
		return fail(stderr, fmt.Errorf("--connect: %w", err))
	}
	return 0
}

func (o *options) connectTo(ctx context.Context, token string, t jsonrpc.Transport) error {
	p, err := streamable.NewProxy(t, &streamable.ProxyOptions{URL: o.connect, Token: token})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// connectToken returns the token of the environment, else that of the home's file.
func connectToken(getenv func(string) string) (string, error) {
	if token := strings.TrimSpace(getenv(tokenVariable)); token != "" {
		if !wholeToken.MatchString(token) {
			return "", fmt.Errorf("%s is not a token", tokenVariable)
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
		return "", fmt.Errorf("there is no %s, which codex-mcp http makes at its start; for another machine's server set %s", file, tokenVariable)
	}
	token := strings.TrimSpace(string(raw))
	if err == nil && !wholeToken.MatchString(token) {
		err = fmt.Errorf("%s has no token", file)
	}
	return token, err
}
