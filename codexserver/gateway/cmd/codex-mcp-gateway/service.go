package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/front"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	common "github.com/codexmcp/codexmcp/internal/program"
)

// service is what this process does: it serves HTTP, runs workers, or both. It is an
// [httpserve.Backend].
type service struct {
	mux    *http.ServeMux
	broker *broker.Broker
	leases *lease.Leases
	// replicas is how many NATS servers store the buckets, and at least so many the state of a user.
	replicas int
	front    *front.Front   // nil without the role
	access   *access.Access // that of the front
	node     *node.Node     // nil without the role
	pool     *workers.Pool  // that of the node
}

// joinTimeout bounds how long the start waits for NATS.
const joinTimeout = 30 * time.Second

// join connects to NATS and opens the buckets. The caller ends the service, also after an error.
func (s *service) join(ctx context.Context, c *configuration, log *slog.Logger) (err error) {
	n := c.service.NATS
	if s.broker, err = broker.Connect(broker.Options{
		URL: n.URL, Credentials: n.Credentials, CA: n.CA, Cert: n.Cert, Key: n.Key,
		Name: program + " " + c.service.Node.Name, Folder: filepath.Join(c.home, "codex-mcp", "nats"), Logger: log,
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	ttl := time.Duration(n.Lease)
	users := &broker.Bucket{Name: lease.Bucket, About: "codex-mcp-gateway: the node of each user", Replicas: n.Replicas,
		MaxValue: lease.MaxValue}
	leases, err := s.broker.Open(ctx, users)
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	s.replicas = users.Replicas
	nodes, err := s.broker.Open(ctx, &broker.Bucket{Name: placement.Bucket, About: "codex-mcp-gateway: the nodes",
		TTL: ttl, Replicas: s.replicas, MaxValue: placement.MaxValue})
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	s.leases = lease.New(leases, placement.New(nodes), ttl)
	return nil
}

// newService returns the service of this process. from has the fields that the configuration
// does not set.
func (o *options) newService(ctx context.Context, c *configuration, from workers.Options) (_ *service, err error) {
	s := &service{mux: http.NewServeMux()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(), s.end())
		}
	}()
	if c.service.NATS.Has(settings.RoleFront) {
		if s.access, err = access.New(c.http, from.Logger); err != nil {
			return nil, err
		}
	}
	if c.service.NATS.Has(settings.RoleNode) { // before NATS, because its errors are those of the configuration
		if s.pool, err = o.newPool(c, from); err != nil {
			return nil, err
		}
	}
	l, err := listen(c)
	if err != nil {
		return nil, err
	}
	if err := s.join(ctx, c, from.Logger); err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	if s.pool != nil {
		if err := s.addNode(ctx, c, l, from); err != nil {
			return nil, err
		}
		from.Metrics.Watch(s.node.Figures)
	}
	if s.access != nil {
		if err := s.addFront(c, from); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// certificates are the files with which fronts and nodes connect.
func certificates(c *configuration) link.Certificates {
	return link.Certificates{CA: c.service.Link.CA, Cert: c.service.Link.Cert, Key: c.service.Link.Key}
}

// listen returns where fronts connect to this process. It is nil if only its own does.
func listen(c *configuration) (net.Listener, error) {
	if c.service.NATS.URL == "" {
		return nil, nil
	}
	if err := certificates(c).Check(); err != nil {
		return nil, err
	}
	if !c.service.NATS.Has(settings.RoleNode) {
		return nil, nil
	}
	if c.service.Link.Address == "" {
		return nil, errors.New("link.address: missing; want where fronts reach this node, such as m1.example.com:4520")
	}
	l, err := net.Listen("tcp", c.service.Link.Listen)
	if err != nil {
		return nil, fmt.Errorf("link.listen: %w", err)
	}
	return l, nil
}

// addNode makes the process a node, which closes the pool.
func (s *service) addNode(ctx context.Context, c *configuration, l net.Listener, from workers.Options) (err error) {
	s.node, err = node.New(ctx, node.Options{
		Conn: s.broker.Conn, Stream: s.broker.Stream, Replicas: s.replicas, Leases: s.leases, Pool: s.pool,
		Name: c.service.Node.Name, Listener: l, Certificates: certificates(c), Address: c.service.Link.Address,
		Version: common.Version(), Interval: time.Duration(c.service.NATS.Lease) / 3, Metrics: from.Metrics,
		Logger: from.Logger,
	})
	return err
}

// addFront makes the process a front.
func (s *service) addFront(c *configuration, from workers.Options) error {
	hosts := c.http.Hosts
	if len(hosts) > 0 {
		hosts = append(slices.Clip(hosts), "localhost", "127.0.0.1", "::1")
	}
	guard, err := mcphttp.NewGuard(&mcphttp.Options{
		Authenticate: s.access.Identify, Challenge: challenge, Metadata: access.MetadataURL(c.http), Hosts: hosts,
		Origins: c.http.Origins, Logger: from.Logger,
	})
	if err != nil {
		return err
	}
	var local *link.Server
	if s.node != nil {
		local = s.node.Server()
	}
	s.front = front.New(front.Options{
		Local: local, Certificates: certificates(c), Leases: s.leases, Guard: guard, Still: s.access.Still,
		Principals: c.http.Principals, Metrics: from.Metrics, Logger: from.Logger,
	})
	s.mux.Handle(mcpPath, s.front)
	s.mux.Handle(mcpPath+"/{$}", s.front) // as many people write it
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
	if s.pool != nil { // the start has failed
		return s.pool.Close()
	}
	return nil
}

// end leaves the service, after the last requests.
func (s *service) end() error {
	if s.front != nil {
		s.front.Close()
	}
	if s.broker == nil {
		return nil
	}
	return s.broker.Close()
}
