package dynamolease

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"

	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// receive reads an answer to its end and fails if it is not whole. The SDK finds
// that out too late or not at all: it takes no body for a result without
// members, and a wrong checksum is a line in its log.
func receive(r *smithyhttp.Response) error {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = whole(r.StatusCode, r.Header.Get("X-Amz-Crc32"), body)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), r.Body}
	if err != nil {
		return brokenError{fmt.Errorf("broken answer: %w", err)}
	}
	return nil
}

func whole(status int, sum string, body []byte) error {
	if status == http.StatusOK && len(body) == 0 {
		return errors.New("it is empty")
	}
	if actual := strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10); sum != "" && sum != actual {
		return fmt.Errorf("its checksum is %s, not %s", actual, sum)
	}
	return nil
}

// A brokenError is an answer that did not arrive whole. It tells the SDK to try
// again, as it does when there is none.
type brokenError struct{ error }

func (e brokenError) Unwrap() error      { return e.error }
func (brokenError) RetryableError() bool { return true }
