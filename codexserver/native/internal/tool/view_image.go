package tool

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

var imageDefinition = model.Tool{
	Name:        "view_image",
	Description: "Shows you an image file of this machine.",
	Parameters: []byte(`{"type":"object","properties":{
"path":{"type":"string","description":"The file, relative to the working folder"}
},"required":["path"],"additionalProperties":false}`),
}

// maxImage is the size in bytes of the largest image file that is sent to the model.
const maxImage = 20 << 20

func (t *Turn) viewImage(_ context.Context, call Call) (Result, error) {
	var args struct {
		Path string `json:"path"`
	}
	if err := decodeArguments(call.Arguments, &args); err != nil {
		return Result{Output: err.Error()}, nil
	}
	if args.Path == "" {
		return Result{Output: (&argumentError{"path", "missing"}).Error()}, nil
	}
	path := t.at(args.Path)
	url, err := imageURL(path)
	if err != nil {
		return Result{Output: fmt.Sprintf("the image cannot be shown: %v", err)}, nil
	}
	if err := t.Acting(); err != nil {
		return Result{}, err
	}
	t.Host.Emit(protocol.ViewImageToolCall{CallID: call.ID, Path: path})
	return Result{
		Output: "attached local image path",
		Items: []protocol.ResponseItem{protocol.MessageItem{
			Role:    "user",
			Content: []protocol.ContentItem{{Type: "input_image", ImageURL: url}},
		}},
	}, nil
}

// imageURL reads an image file as a data URL. Only the content says that it is one: a command can give a link to
// any file the name of an image.
func imageURL(path string) (string, error) {
	data, err := safefile.Read(path, maxImage)
	if err != nil {
		return "", err
	}
	kind := http.DetectContentType(data)
	if !strings.HasPrefix(kind, "image/") {
		return "", fmt.Errorf("%s is not an image: use PNG, JPEG, GIF or WebP", path)
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}
