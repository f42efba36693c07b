package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
)

// homeOf returns the home of a user on this machine that is not configured elsewhere.
func (c *configuration) homeOf(name string) string {
	return filepath.Join(c.home, "codex-mcp", "principals", name)
}

// forgetUser removes what NATS and this machine keep of a user. It keeps the user's lease meanwhile, so
// that no worker of the user can run: neither one that would write again what is removed, nor one that
// still works.
func (s *service) forgetUser(
	ctx context.Context, c *configuration, name string, log *slog.Logger, w io.Writer,
) (err error) {
	if err := settings.CheckPrincipalName(name); err != nil {
		return err
	}
	if _, configured := c.http.Principals[name]; configured {
		return fmt.Errorf("http.principals.%s: first remove the table on all machines, and reload them", name)
	}
	id := rand.Text()
	holder := s.leases.NewHolder(lease.HolderOptions{
		ID: id, Describe: func() placement.Node { return placement.Node{Name: "user-forget", Draining: true} },
		Lost: func(string) {}, Metrics: metrics.New(), Logger: log,
	})
	defer func() { err = errors.Join(err, holder.Close(ctx)) }()
	if err := holder.Join(ctx); err != nil {
		return err
	}
	got, err := holder.Take(ctx, name)
	if err != nil {
		return err
	}
	if got.ID != id {
		return fmt.Errorf("the node %s has the user: first remove http.principals.%s there, and reload it", got.Node,
			name)
	}
	state, err := jetstore.Remove(ctx, s.broker.Stream, name)
	if err != nil {
		return fmt.Errorf("the state in NATS: %w", err)
	}
	home := c.homeOf(name)
	_, missing := os.Lstat(home)
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	word := map[bool]string{true: "removed", false: "there was no"}
	_, err = fmt.Fprintf(w, "%s state in NATS\n%s home %s\n", word[state], word[missing == nil], home)
	return err
}
