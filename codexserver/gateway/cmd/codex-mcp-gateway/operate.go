package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	common "github.com/codexmcp/codexmcp/internal/program"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// operateTimeout bounds a command of the operator.
const operateTimeout = 20 * time.Second

// operate carries out a command of the operator.
func (o *options) operate(ctx context.Context, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	log := common.Logger(stderr, o.logFormat, o.log)
	c, err := o.configure(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if c.service.NATS.URL == "" && o.command[0] != "user" { // that one reaches it while no gateway runs
		return errors.New("nats.url: missing; without it nobody can reach the server in the process of the gateway")
	}
	s := &service{}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.join(ctx, c, log); err != nil {
		return err
	}
	switch o.command[0] {
	case "drain":
		return s.drainNode(ctx, o.command[1], stdout)
	case "status":
		return s.printStatus(ctx, o.json, stdout)
	default:
		return s.forgetUser(ctx, c, o.command[2], log, stdout)
	}
}

// status is the state of the service.
type status struct {
	Nodes  []nodeStatus  `json:"nodes"`
	Leases []lease.Lease `json:"leases"`
}

type nodeStatus struct {
	ID    string `json:"id"`
	Users int    `json:"users"`
	placement.Node
}

func (s *service) status(ctx context.Context) (*status, error) {
	nodes, err := s.leases.Nodes.All(ctx)
	if err != nil {
		return nil, err
	}
	leases, err := s.leases.All(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b placement.Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(leases, func(a, b lease.Lease) int { return cmp.Compare(a.User, b.User) })
	all, users := &status{Leases: leases}, map[string]int{}
	for _, l := range leases {
		users[l.ID]++
	}
	for _, n := range nodes {
		all.Nodes = append(all.Nodes, nodeStatus{n.ID, users[n.ID], n})
	}
	return all, nil
}

// printStatus prints the state of the service, as JSON or as tables.
func (s *service) printStatus(ctx context.Context, asJSON bool, w io.Writer) error {
	all, err := s.status(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		text, err := json.Marshal(all, jsontext.WithIndent("  "))
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", text)
		}
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tPROCESS\tUSERS\tSTATE\tVERSION")
	for _, n := range all.Nodes {
		state := "ready"
		if n.Draining {
			state = "draining"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", n.Name, n.ID, n.Users, state, n.Version)
	}
	fmt.Fprintln(t, "\nUSER\tNODE\tPROCESS\tEPOCH")
	for _, l := range all.Leases {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\n", l.User, l.Node, l.ID, l.Epoch)
	}
	return t.Flush()
}

// drainNode drains all processes with the name of a node.
func (s *service) drainNode(ctx context.Context, name string, w io.Writer) error {
	nodes, err := s.leases.Nodes.All(ctx)
	if err != nil {
		return err
	}
	drained := 0
	for _, n := range nodes {
		if n.Name != name {
			continue
		}
		if err := node.Drain(ctx, s.broker.Conn, n.ID); err != nil {
			return fmt.Errorf("the node %s, process %s: %w", name, n.ID, err)
		}
		drained++
		fmt.Fprintf(w, "%s (%s) takes no more users\n", name, n.ID)
	}
	if drained == 0 {
		return fmt.Errorf("no node has the name %q", name)
	}
	return nil
}
