//! gRPC-Web as browsers use it: the frames of the response body contain messages and trailers.

use prost::Message;

use super::Client;

const FRAME: &str = "application/grpc-web+proto";

impl Client {
    /// Calls `method`, which must succeed, and returns the only message of the response.
    pub(crate) async fn grpc_web<R: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
    ) -> R {
        let message = message.encode_to_vec();
        let mut frame = vec![0];
        frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        frame.extend(message);
        let request = self.http.post(format!("{}{method}", self.base)).body(frame);
        let request = request.header("content-type", FRAME).header("x-grpc-web", "1");
        let answer = request.bearer_auth(&self.token).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], FRAME);
        let body = answer.bytes().await.unwrap();
        let length = u32::from_be_bytes(body[1..5].try_into().unwrap()) as usize;
        // The trailers are in the last frame.
        let trailers = String::from_utf8_lossy(&body[5 + length + 5..]).into_owned();
        assert!(trailers.contains("grpc-status:0"), "{trailers}");
        R::decode(&body[5..5 + length]).unwrap()
    }
}
