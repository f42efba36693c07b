package node

import (
	"context"
	"errors"
	"net/http"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
)

// handler handles the requests of fronts.
type handler struct{ n *Node }

var errSender = errors.New("the sender is not a user of this node")

// Admit implements [link.Handler].
func (h handler) Admit(ctx context.Context, head link.Head) (context.Context, func(), error) {
	if !h.n.fits(head.User.Name) {
		return nil, nil, errSender
	}
	return h.n.holder.Hold(ctx, head.User.Name, head.Epoch)
}

// Serve implements [link.Handler].
func (h handler) Serve(w http.ResponseWriter, r *http.Request, head link.Head) {
	h.n.o.Pool.Serve(w, r, head.User)
}
