package apigw

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
)

var small = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, `{"token":7}`)
})

// BenchmarkHandler is the adapter alone, from decoded event to response.
func BenchmarkHandler(b *testing.B) {
	for _, name := range []string{"iam-role", "jwt"} {
		b.Run(name, func(b *testing.B) {
			e, h := event(b, name), Handler(small)
			b.ReportAllocs()
			for b.Loop() {
				if res, err := h(b.Context(), e); err != nil || res.StatusCode != http.StatusCreated {
					b.Fatal(res, err)
				}
			}
		})
	}
}

// BenchmarkHandlerJSON adds the runtime's part, from JSON to JSON.
func BenchmarkHandlerJSON(b *testing.B) {
	data, err := os.ReadFile("testdata/iam-role.json")
	if err != nil {
		b.Fatal(err)
	}
	h := lambda.NewHandler(Handler(small))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Invoke(b.Context(), data); err != nil {
			b.Fatal(err)
		}
	}
}
