package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/front"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/nats-io/nats.go/jetstream"
)

// service is what this process does: it serves HTTP, runs workers, or both. It is an
// [httpserve.Backend].
type service struct {
	mux    *http.ServeMux
	broker *broker.Broker
	leases *lease.Leases
	nodes  *placement.Nodes
	// replicas is how many NATS servers store the buckets, and at least so many the state of a user.
	replicas int
	front    *front.Front   // nil without the role
	access   *access.Access // that of the front
	node     *node.Node     // nil without the role
	pool     *workers.Pool  // that of the node
}

const (
	// joinTimeout bounds how long the start waits for NATS.
	joinTimeout = 30 * time.Second
	// aloneInterval is how often a node without a cluster looks for leases that are not used.
	aloneInterval = 5 * time.Second
)

// join connects to NATS and opens the buckets.
func join(ctx context.Context, c *configuration, from workers.Options) (s *service, err error) {
	n := c.service.NATS
	s = &service{mux: http.NewServeMux()}
	if s.broker, err = broker.Connect(broker.Options{
		URL: n.URL, Credentials: n.Credentials, CA: n.CA, Cert: n.Cert, Key: n.Key, Name: program + " " + c.service.Node.Name, Folder: filepath.Join(c.home, "codex-mcp", "nats"), Logger: from.Logger,
	}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	ttl := time.Duration(n.Lease)
	if s.broker.Embedded() { // nobody else can take a lease
		ttl = 0
	}
	var nodes jetstream.KeyValue
	leases, err := s.broker.Open(ctx, broker.Bucket{Name: lease.Bucket, About: "codex-mcp-gateway: the node of each user", TTL: ttl, Replicas: n.Replicas, AnyReplicas: c.anyReplicas, MaxValue: lease.MaxValue})
	if s.replicas = n.Replicas; err == nil && s.replicas == 0 {
		s.replicas, err = broker.Replicas(ctx, leases)
	}
	if err == nil {
		nodes, err = s.broker.Open(ctx, broker.Bucket{Name: placement.Bucket, About: "codex-mcp-gateway: the nodes", TTL: ttl, Replicas: s.replicas, AnyReplicas: c.anyReplicas, MaxValue: placement.MaxValue})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("NATS: %w", err), s.end())
	}
	s.leases, s.nodes = lease.New(leases, ttl), placement.New(nodes)
	return s, nil
}

// newService returns the service of this process. from has the fields that the configuration
// does not set.
func (o *options) newService(ctx context.Context, c *configuration, files *files, from workers.Options) (s *service, err error) {
	var pool *workers.Pool
	roles := c.service.NATS
	var who *access.Access
	if roles.Has(settings.RoleFront) {
		if who, err = access.New(c.http, &access.Options{BehindProxy: o.Proxy != "", Logger: from.Logger}); err != nil {
			return nil, err
		}
	}
	if roles.Has(settings.RoleNode) { // before NATS, because its errors are those of the configuration
		if pool, err = o.newPool(c, files, from); err != nil {
			return nil, err
		}
	}
	if s, err = join(ctx, c, from); err != nil {
		if pool != nil {
			err = errors.Join(err, pool.Close())
		}
		return nil, err
	}
	if pool != nil {
		if err = s.addNode(ctx, c, pool, from); err != nil {
			return nil, errors.Join(err, s.end())
		}
		from.Telemetry.Watch(pool)
	}
	if who != nil {
		if err = s.addFront(c, who, from); err != nil {
			return nil, errors.Join(err, s.Close(), s.end())
		}
	}
	return s, nil
}

// newGuard returns what admits the requests of clients.
func newGuard(c *configuration, who *access.Access, from workers.Options) (*mcphttp.Guard, error) {
	hosts := c.http.Hosts
	if len(hosts) > 0 {
		hosts = append(slices.Clip(hosts), "localhost", "127.0.0.1", "::1")
	}
	return mcphttp.NewGuard(&mcphttp.Options{
		Authenticate: who.Identify, Challenge: challenge, Metadata: access.MetadataURL(c.http), Hosts: hosts, Origins: c.http.Origins, Logger: from.Logger,
	})
}

// addNode makes the process a node, which closes the pool.
func (s *service) addNode(ctx context.Context, c *configuration, pool *workers.Pool, from workers.Options) (err error) {
	interval := time.Duration(c.service.NATS.Lease) / 3
	if s.broker.Embedded() {
		interval = aloneInterval
	}
	s.pool = pool
	s.node, err = node.New(ctx, node.Options{
		Conn: s.broker.Conn, Stream: s.broker.Stream, Replicas: s.replicas, Leases: s.leases, Nodes: s.nodes, Pool: pool, Principals: c.http.Principals, Name: c.service.Node.Name, Labels: c.service.Node.Labels, Capacity: c.service.Node.Capacity,
		Version: version(), Alone: s.broker.Embedded(), Interval: interval, Telemetry: from.Telemetry, Logger: from.Logger,
	})
	return err
}

// addFront makes the process a front.
func (s *service) addFront(c *configuration, who *access.Access, from workers.Options) error {
	guard, err := newGuard(c, who, from)
	if err != nil {
		return err
	}
	s.access = who
	s.front, err = front.New(front.Options{
		Conn: s.broker.Conn, Leases: s.leases, Nodes: s.nodes, Guard: guard, Still: who.Still, Principals: c.http.Principals, Telemetry: from.Telemetry, Logger: from.Logger,
	})
	if err != nil {
		return err
	}
	s.mux.Handle(mcpPath, s.front)
	s.mux.Handle(mcpPath+"/{"+front.UserValue+"}", s.front)
	return access.Metadata(s.mux, c.http, guard)
}

// noticeTime is how long a front that drains goes on at least. A proxy that asks it every second learns meanwhile that
// it must use another one. Otherwise requests would break off that the proxy has just sent: nobody could know
// whether they had begun.
const noticeTime = 3 * time.Second

// Drain implements [httpserve.Backend].
func (s *service) Drain(ctx context.Context) (err error) {
	noticed := time.After(noticeTime)
	if s.node != nil {
		err = s.node.Drain(ctx)
	}
	if s.front == nil || s.broker.Embedded() { // without another front
		return err
	}
	select {
	case <-noticed:
	case <-ctx.Done():
	}
	return errors.Join(err, s.front.Drain(ctx))
}

// Close implements [httpserve.Backend]. The front answers until [service.end].
func (s *service) Close() error {
	if s.front != nil {
		s.front.Hurry()
	}
	if s.node != nil {
		return s.node.Close()
	}
	return nil
}

// end leaves the service, after the last requests.
func (s *service) end() (err error) {
	if s.front != nil {
		err = s.front.Close()
	}
	return errors.Join(err, s.broker.Close())
}
