package apigw_test

import (
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/pawl-lock/pawl/pkg/apigw"
)

func ExampleHandler() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /whoami", func(w http.ResponseWriter, r *http.Request) {
		req, _ := apigw.FromContext(r.Context())
		if req.Caller.Principal == "" {
			http.Error(w, "who calls?", http.StatusForbidden)
			return
		}
		fmt.Fprintln(w, req.Caller.Principal)
	})
	lambda.Start(apigw.Handler(mux))
}
