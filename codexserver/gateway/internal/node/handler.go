package node

import (
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

var errSender = errors.New("the sender is neither the user nor its approver")

// Admit implements [link.Handler].
func (h handler) Admit(ctx context.Context, head *link.Head) (context.Context, error) {
	p, known := h.n.o.Principals[head.User]
	if !known || head.Sender != head.User && (head.Sender != p.Approver || p.Approver == "") {
		return nil, errSender
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
	h.n.o.Pool.Serve(w, r, workers.Request{User: head.User, Sender: mcphttp.Principal{Name: head.Sender, Scopes: scopes}})
}
