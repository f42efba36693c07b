package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
)

// userStatus is what is known about a user.
type userStatus struct {
	Name string `json:"name"`
	// Configured means that the configuration on this machine has the user.
	Configured bool `json:"configured"`
	// Node has the user's lease; "" means none.
	Node string `json:"node"`
	// State is whether NATS keeps something, and Home whether this machine has a home.
	State bool `json:"state"`
	Home  bool `json:"home"`
}

// homeOf returns the home of a user on this machine that is not configured elsewhere.
func (c *configuration) homeOf(name string) string {
	return filepath.Join(c.home, "codex-mcp", "principals", name)
}

// users returns all users that are configured, or of whom something is left.
func (s *service) users(ctx context.Context, c *configuration) (all []userStatus, err error) {
	kept, err := jetstore.Users(ctx, s.broker.Stream)
	if err != nil {
		return nil, err
	}
	leases, err := s.leases.All(ctx)
	if err != nil {
		return nil, err
	}
	homes, err := os.ReadDir(c.homeOf(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := map[string]*userStatus{}
	user := func(name string) *userStatus {
		if found[name] == nil {
			found[name] = &userStatus{Name: name}
		}
		return found[name]
	}
	for name := range c.http.Principals {
		user(name).Configured = true
	}
	for _, name := range kept {
		user(name).State = true
	}
	for _, l := range leases {
		user(l.User).Node = l.Node
	}
	for _, home := range homes {
		user(home.Name()).Home = true
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all, nil
}

// printUsers prints all users, as JSON or as a table.
func (s *service) printUsers(ctx context.Context, c *configuration, asJSON bool, w io.Writer) error {
	all, err := s.users(ctx, c)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(all, w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "USER\tCONFIGURED\tNODE\tSTATE\tHOME")
	word := map[bool]string{true: "yes", false: "no"}
	for _, u := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", u.Name, word[u.Configured], cmp.Or(u.Node, "-"), word[u.State], word[u.Home])
	}
	return t.Flush()
}

// forgetUser removes what NATS and this machine keep of a user. It keeps the user's lease meanwhile, so
// that no worker of the user can run: neither one that would write again what is removed, nor one that
// still works.
func (s *service) forgetUser(ctx context.Context, c *configuration, name string, log *slog.Logger, w io.Writer) (err error) {
	if err := settings.CheckPrincipalName(name); err != nil {
		return err
	}
	if _, configured := c.http.Principals[name]; configured {
		return fmt.Errorf("http.principals.%s: first remove the table on all machines, and reload them", name)
	}
	const here = "user-forget"
	id := rand.Text()
	holder := s.leases.NewHolder(lease.HolderOptions{ID: id, Describe: func() placement.Node { return placement.Node{Name: here, Draining: true} }, Lost: func(string) {}, Logger: log})
	defer func() { err = errors.Join(err, holder.Close(ctx)) }()
	if err := holder.Join(ctx); err != nil {
		return err
	}
	got, err := holder.Take(ctx, name)
	if err != nil {
		return err
	}
	if got.ID != id {
		return fmt.Errorf("the node %s has the user: first remove http.principals.%s there, and reload it", got.Node, name)
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
