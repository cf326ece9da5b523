/** A server of the matrix that listens. */
export interface MatrixServer {
  readonly url: string;
  close(): Promise<void>;
}
