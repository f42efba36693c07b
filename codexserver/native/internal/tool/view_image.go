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

// MaxImage is the size in bytes of the largest image that is sent to the model.
const MaxImage = 20 << 20

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
	url := ""
	path, err := t.near(args.Path)
	if err == nil {
		url, err = ImageURL(path, "") // only the content counts: a command can give a link to any file the name of an image
	}
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

// ImageURL reads an image file as a data URL. Otherwise is the type of a content that does not show that it is one;
// with "" such a file is an error.
func ImageURL(path, otherwise string) (string, error) {
	data, err := safefile.Read(path, MaxImage)
	if err != nil {
		return "", err
	}
	kind := http.DetectContentType(data)
	if !strings.HasPrefix(kind, "image/") {
		if kind = otherwise; kind == "" {
			return "", fmt.Errorf("%s is not an image: use PNG, JPEG, GIF or WebP", path)
		}
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}
