package main

import (
	"context"
	"net/http"
	"sync"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/jsonrpc/wsrpc"
)

// The messages: backup and confirm are requests, progress is a notification.
type (
	backupParams struct {
		Folder string `json:"folder"`
	}
	backupResult struct {
		Files int `json:"files"`
	}
	confirmParams struct {
		Question string `json:"question"`
	}
	progressParams struct {
		Done int `json:"done"`
		Of   int `json:"of"`
	}
)

// server is an HTTP handler: each connection becomes a peer.
type server struct {
	connections sync.WaitGroup
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.connections.Add(1)
	defer s.connections.Done()
	conn, err := websocket.Accept(w, r, nil) // refuses pages of other origins
	if err != nil {
		return // it has answered
	}
	mux := &jsonrpc.Mux{}
	mux.Handle("backup", jsonrpc.HandlerFunc(backup))
	_ = jsonrpc.NewPeer(wsrpc.New(conn), mux, nil).Run(r.Context())
}

// backup is called by the client, and calls it back.
func backup(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p backupParams
	if err := r.Bind(&p); err != nil {
		return nil, err
	}
	client := r.Peer()
	var confirmed bool
	if err := client.Call(ctx, "confirm", confirmParams{"Copy " + p.Folder + " now?"}, &confirmed); err != nil {
		return nil, err
	}
	if !confirmed {
		return nil, jsonrpc.Errorf(refused, "the user does not want it")
	}
	const files = 3
	for n := range files {
		if err := client.Notify(ctx, "progress", progressParams{n + 1, files}); err != nil {
			return nil, err
		}
	}
	return backupResult{files}, nil
}

// refused is an error code of this application.
const refused jsonrpc.Code = 1
