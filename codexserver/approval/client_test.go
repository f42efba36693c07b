package approval_test

import (
	"context"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
)

func TestMayAsk(t *testing.T) {
	ctx := t.Context()
	without := approval.WithoutQuestions(ctx)
	below, cancel := context.WithCancel(without)
	cancel()
	if !approval.MayAsk(ctx) || approval.MayAsk(without) || approval.MayAsk(below) {
		t.Errorf("%t, %t, %t", approval.MayAsk(ctx), approval.MayAsk(without), approval.MayAsk(below))
	}
}
