package link_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
)

// node has the lease of ann, with the epoch 7.
type node struct{}

func (node) Admit(ctx context.Context, h *link.Head) (context.Context, func(), error) {
	if h.User != "ann" || h.Epoch != 7 {
		return nil, nil, errors.New("another node has the user")
	}
	return ctx, func() {}, nil
}

func (node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s of %s", r.URL, link.HeadOf(r.Context()).Sender)
}

// A front and a node in one process.
func Example() {
	server := link.NewServer(node{}, slog.New(slog.DiscardHandler))
	defer server.Close(context.Background())
	for _, epoch := range []uint64{7, 6} {
		answer := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/mcp", http.NoBody)
		err := server.Do(answer, r, link.Head{User: "ann", Sender: "ann", Epoch: epoch})
		fmt.Println(answer.Body, errors.Is(err, link.ErrRefused))
	}
	// Output:
	// /mcp of ann false
	//  true
}
