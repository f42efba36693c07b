package appserver

import (
	"context"
	"time"
)

// Summary is one conversation of a list.
type Summary struct {
	// ID is for Resume, Fork and Archive.
	ID string
	// Path is the conversation's file.
	Path string
	// Preview is the beginning of its first message.
	Preview string
	// Cwd is its working folder.
	Cwd string
	// Created and Updated are to the second.
	Created, Updated time.Time
}

// Page is a part of a list, the newest first.
type Page struct {
	Items []Summary
	// Next is the cursor of the next part, "" after the last.
	Next string
}

// List lists the conversations that have had a turn. limit is the size of a
// page, 0 for Codex's own; cursor is "" or the last page's Next.
func (e *Engine) List(ctx context.Context, limit int, cursor string) (*Page, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	var r struct {
		Data       []thread `json:"data"`
		NextCursor string   `json:"nextCursor"`
	}
	params := struct {
		Limit  int    `json:"limit,omitzero"`
		Cursor string `json:"cursor,omitzero"`
	}{limit, cursor}
	if err := c.control(ctx, "thread/list", params, &r); err != nil {
		return nil, err
	}
	p := &Page{Next: r.NextCursor, Items: make([]Summary, 0, len(r.Data))}
	for _, t := range r.Data {
		p.Items = append(p.Items, Summary{
			ID: t.ID, Path: t.Path, Preview: t.Preview, Cwd: t.Cwd,
			Created: time.Unix(t.CreatedAt, 0).UTC(), Updated: time.Unix(t.UpdatedAt, 0).UTC(),
		})
	}
	return p, nil
}

// Archive puts a conversation away: it is listed no more, and can be resumed
// only after `codex unarchive`.
func (e *Engine) Archive(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	if err := c.control(ctx, "thread/archive", map[string]string{"threadId": id}, nil); err != nil {
		return err
	}
	if t := c.find(id); t != nil {
		c.forget(t)
	}
	return nil
}
