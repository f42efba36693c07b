package main

import (
	"context"
	"fmt"
	"io"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// client calls the server's methods; handler.go handles what the server sends.
type client struct {
	out   io.Writer
	lines <-chan string
	peer  *jsonrpc.Peer
	ended chan struct{} // receives a value at the end of a turn

	conversation string // the conversation that gets messages; "" begins a new one
	listed       []protocol.ConversationSummary
}

func (c *client) initialize(ctx context.Context) error {
	server, err := mcptypes.Initialize.Call(ctx, c.peer, &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion,
		ClientInfo:      mcptypes.Implementation{Name: "client-example", Version: "1"},
	})
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	fmt.Fprintln(c.out, "connected to", server.ServerInfo.Name)
	return mcptypes.NotificationsInitialized.Notify(ctx, c.peer, nil)
}

// askFirst returns the params for new and resumed conversations: every command that is not
// known to be safe needs an approval.
func askFirst() *protocol.NewConversationParams {
	return &protocol.NewConversationParams{ApprovalPolicy: protocol.ApprovalUntrusted}
}

// say sends a message and waits until its turn ends.
func (c *client) say(ctx context.Context, text string) error {
	if c.conversation == "" {
		var begun protocol.NewConversationResult
		if err := c.peer.Call(ctx, "newConversation", askFirst(), &begun); err != nil {
			return err
		}
		if err := c.listen(ctx, begun.ConversationID); err != nil {
			return err
		}
	}
	err := c.peer.Call(ctx, "sendUserMessage", protocol.SendUserMessageParams{
		ConversationID: c.conversation, Items: protocol.TextInput(text),
	}, nil)
	if err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-c.peer.Done():
		return jsonrpc.ErrClosed
	}
}

// listen sends further messages to a conversation and subscribes to its events.
func (c *client) listen(ctx context.Context, id string) error {
	c.conversation = id
	return c.peer.Call(ctx, "addConversationListener", protocol.AddConversationListenerParams{ConversationID: id}, nil)
}

func (c *client) list(ctx context.Context) error {
	var page protocol.ListConversationsResult
	if err := c.peer.Call(ctx, "listConversations", protocol.ListConversationsParams{}, &page); err != nil {
		return err
	}
	c.listed = page.Items
	for i, s := range c.listed {
		fmt.Fprintf(c.out, "%d  %.60q\n", i+1, s.Preview)
	}
	return nil
}

func (c *client) resume(ctx context.Context, s protocol.ConversationSummary) error {
	var resumed protocol.ResumeConversationResult
	err := c.peer.Call(ctx, "resumeConversation", protocol.ResumeConversationParams{Path: s.Path, Overrides: askFirst()}, &resumed)
	if err != nil {
		return err
	}
	for _, past := range resumed.InitialMessages {
		c.show(past)
	}
	return c.listen(ctx, resumed.ConversationID)
}

func (c *client) archive(ctx context.Context, s protocol.ConversationSummary) error {
	if c.conversation == s.ConversationID {
		c.conversation = ""
	}
	return c.peer.Call(ctx, "archiveConversation", protocol.ArchiveConversationParams{
		ConversationID: s.ConversationID, RolloutPath: s.Path,
	}, nil)
}
