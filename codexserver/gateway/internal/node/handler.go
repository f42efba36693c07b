package node

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// handler handles the requests of fronts.
type handler struct{ n *Node }

var errSender = errors.New("the sender is not the user")

// Admit implements [link.Handler].
func (h handler) Admit(ctx context.Context, head *link.Head) (context.Context, func(), error) {
	if _, known := h.n.users.Get(head.User); !known || head.Sender != head.User {
		return nil, nil, errSender
	}
	return h.n.holder.Hold(ctx, head.User, head.Epoch)
}

// ServeHTTP implements [http.Handler].
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := link.HeadOf(r.Context())
	scopes := mcphttp.ParseScopes(strings.Join(head.Scopes, " "))
	if scopes == nil {
		scopes = []mcphttp.Scope{} // nil would be all
	}
	traced := &statusWriter{ResponseWriter: w}
	hop := h.n.o.Telemetry.Node(r.Header, h.n.o.Name, head.Sender)
	defer func() { hop.End(traced.status) }()
	h.n.o.Pool.Serve(traced, r, workers.Request{User: head.User, Sender: mcphttp.Principal{Name: head.Sender, Scopes: scopes}})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
