package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// oldFront is a front that remembers all leases, and sends requests by those that have ended. No
// node may carry them out.
type oldFront struct {
	s         *site
	leases    *lease.Leases
	client    *link.Client
	addresses map[string]string        // of nodes, by id
	past      map[string][]lease.Lease // by user, the latest last
	sent      int

	stop    context.CancelFunc
	running sync.WaitGroup
}

// stateStream connects to the NATS servers. It stays connected until the end of the test.
func (s *site) stateStream() jetstream.JetStream {
	s.t.Helper()
	var urls []string
	for _, server := range s.nats {
		urls = append(urls, "tls://"+server.url)
	}
	conn, err := nats.Connect(strings.Join(urls, ","), nats.RootCAs(s.certificate), nats.ClientCert(s.certificate, s.certificate), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}

// followLeases starts an old front. The caller must call end.
func (s *site) followLeases(js jetstream.JetStream, persons []*person) *oldFront {
	s.t.Helper()
	bucket, err := js.KeyValue(s.t.Context(), lease.Bucket)
	if err != nil {
		s.t.Fatal(err)
	}
	nodes, err := js.KeyValue(s.t.Context(), placement.Bucket)
	if err != nil {
		s.t.Fatal(err)
	}
	client := link.NewClient(link.Certificates{CA: s.certificate, Cert: s.certificate, Key: s.certificate}, slog.New(slog.DiscardHandler))
	f := &oldFront{s: s, leases: lease.New(bucket, placement.New(nodes), time.Second), client: client, addresses: map[string]string{}, past: map[string][]lease.Lease{}}
	ctx, stop := context.WithCancel(s.t.Context())
	f.stop = stop
	f.running.Go(func() {
		for ; ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
			f.try(ctx, persons[rand.N(len(persons))].name)
		}
	})
	return f
}

// try looks at the lease of a user, and sends a request by one that was before it, or by one that
// was never there.
func (f *oldFront) try(ctx context.Context, user string) {
	now, err := f.leases.Get(ctx, user)
	if err != nil {
		return // nobody has it, or NATS cannot be reached
	}
	f.addresses[now.ID] = now.Address
	all := f.past[user]
	if n := len(all); n == 0 || all[n-1].Epoch < now.Epoch {
		all = append(all, now)
		f.past[user] = all
	}
	wrong := lease.Lease{ID: now.ID, Epoch: now.Epoch + 1000}
	for _, l := range all {
		if l.Epoch < now.Epoch && rand.N(2) > 0 { // at its node, or at the one that has the lease now
			wrong = lease.Lease{ID: []string{l.ID, now.ID}[rand.N(2)], Epoch: l.Epoch}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, bounded)
	defer cancel()
	f.sent++
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, mcpPath, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header.Set("Content-Type", "application/json")
	head := link.Head{Node: wrong.ID, Epoch: wrong.Epoch, User: mcphttp.Principal{Name: user, Scopes: []mcphttp.Scope{mcphttp.ScopeRead}}}
	if err := f.client.Do(w, r, f.addresses[wrong.ID], head); err == nil {
		f.s.t.Errorf("a node has answered a request for %s with the epoch %d: %d; the lease has the epoch %d", user, wrong.Epoch, w.Code, now.Epoch)
	}
}

// end ends the front.
func (f *oldFront) end() {
	f.stop()
	f.running.Wait()
	f.client.Close()
	count := 0
	for _, all := range f.past {
		count += len(all) - 1
	}
	f.s.t.Logf("%d leases have ended; %d requests with wrong epochs", count, f.sent)
	if f.sent == 0 {
		f.s.t.Error("no request with a wrong epoch was sent")
	}
}
