package model_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestSilentProvider checks that the error names the phase in which the provider was
// silent.
func TestSilentProvider(t *testing.T) {
	idle := int64(5000)
	accept := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs) // until ours is closed
		return ours, nil
	}
	for _, tt := range []struct {
		name, url string
		dial      func(context.Context, string, string) (net.Conn, error)
		want      string
	}{
		{"no connection", "http://provider.test/v1?key=secret", func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "no connection within 2.5s"},
		{"TLS", "https://provider.test/v1", accept, "the TLS handshake was not finished within 5s"},
		{"no answer", "http://provider.test/v1", accept, "no answer within 5s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &http.Transport{DialContext: tt.dial}
				c := client(nil, config.Provider{BaseURL: tt.url, StreamIdleTimeoutMS: &idle})
				c.HTTP = &http.Client{Transport: transport}
				_, err := c.Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
				if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				transport.CloseIdleConnections()
			})
		})
	}
}
