package web

import (
	"context"
	"net/http"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// CheckedDial connects as a client without options does that fetches a page of a public host.
func CheckedDial(ctx context.Context, address string) error {
	a, err := webaddr.Parse("http://public.example/")
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.String(), nil)
	if err != nil {
		return err
	}
	t, err := New(Options{}).transport(req, a)
	if err != nil {
		return err
	}
	conn, err := t.DialContext(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	return err
}
